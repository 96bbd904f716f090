package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Owner is whom a file is to belong to. The zero Owner is who runs the program.
type Owner struct {
	user, group int
	// isOptional allows that the file stays with who runs the program.
	isOptional bool
}

// OwnerOf returns whom a file belongs to.
func OwnerOf(file fs.FileInfo) Owner {
	native, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{}
	}
	return Owner{user: int(native.Uid), group: int(native.Gid)}
}

// OwnerFor returns whom a file is to belong to that root puts at path for a server of another user: the owner of the
// file that it replaces, or else that of its folder. Either can read it then, so that it is for what belongs to the
// database that they have there, and for nothing else.
//
// In a folder that everybody can write to, such as /tmp, it is who runs the program: anybody could have put there what
// is replaced. It returns an error of the file system.
func OwnerFor(path string) (Owner, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return Owner{}, fmt.Errorf("find the owner for %s: %w", path, err)
	}
	const worldWritable = 0o002
	if dir.Mode().Perm()&worldWritable != 0 {
		return Owner{}, nil
	}
	replaced, err := os.Lstat(path)
	if err == nil && replaced.Mode().IsRegular() {
		return OwnerOf(replaced), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Owner{}, fmt.Errorf("find the owner for %s: %w", path, err)
	}
	owner := OwnerOf(dir)
	owner.isOptional = true
	return owner, nil
}

// Chown lets a file that root has made belong to somebody else. Where another user runs the program, it does nothing. It
// returns an error of the file system.
func Chown(file *os.File, to Owner) error {
	if to == (Owner{}) || os.Geteuid() != 0 {
		return nil
	}
	err := file.Chown(to.user, to.group)
	// In a container, root may be without CAP_CHOWN. No server loses a file that is new.
	if to.isOptional && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("change the owner to user %d: %w", to.user, err)
	}
	return nil
}
