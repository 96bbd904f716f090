package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Owner is the user and group that a file should belong to. The zero Owner is the user that runs the program.
type Owner struct {
	user, group int
	// isOptional allows the file to stay with the user that runs the program.
	isOptional bool
}

// OwnerOf returns the owner of a file.
func OwnerOf(file fs.FileInfo) Owner {
	native, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{}
	}
	return Owner{user: int(native.Uid), group: int(native.Gid)}
}

// OwnerFor returns the owner for a file that root writes at path for the server of another user: the owner of the file
// that it replaces, or else of the directory. That user can then read the file, so use it only for what belongs with
// the database there.
//
// In a world-writable directory, such as /tmp, where any user could have created that file, it is the user that runs
// the program. It returns a file system error.
func OwnerFor(path string) (Owner, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return Owner{}, fmt.Errorf("inspect the directory of %s: %w", path, err)
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
		return Owner{}, fmt.Errorf("inspect %s: %w", path, err)
	}
	owner := OwnerOf(dir)
	owner.isOptional = true
	return owner, nil
}

// Chown changes the owner of a file if root runs the program. It returns a file system error.
func Chown(file *os.File, to Owner) error {
	if to == (Owner{}) || os.Geteuid() != 0 {
		return nil
	}
	err := file.Chown(to.user, to.group)
	// In a container, root may lack CAP_CHOWN. No server loses access to a new file.
	if to.isOptional && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("change the owner to user %d: %w", to.user, err)
	}
	return nil
}
