package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

const (
	othersMayWrite = 0o022
	othersMayRead  = 0o044
	othersMayUse   = 0o077
)

// checkDirectory checks who can replace files in a directory, and returns its owner.
func checkDirectory(path string) (found finding, owner uint32) {
	const check = "folder"
	info, owner, err := stat(path)
	if err != nil {
		return failedBy(check, err), 0
	}
	isSticky := info.Mode()&os.ModeSticky != 0
	const toCreateFiles, writable = 0o300, 2
	me := os.Geteuid()
	switch {
	case !info.IsDir():
		return failed(check, "choose another location for the database", "%s is not a directory", path), owner
	case info.Mode().Perm()&othersMayWrite != 0 && !isSticky:
		return failed(check, "run chmod go-w on it", "others can replace files in %s", path), owner
	case me != 0 && uint32(me) != owner: //nolint:gosec // A user's number is not negative.
		return warned(check, "run the doctor as the server's user", "%s belongs to user %d, but this is user %d",
			path, owner, me), owner
	case errors.Is(syscall.Access(path, writable), syscall.EROFS):
		return failed(check, console.ReadOnlyRemedy, "%s is on a disk that is mounted read-only", path), owner
	case owner != 0 && info.Mode().Perm()&toCreateFiles != toCreateFiles:
		return failed(check, "run chmod u+rwx on it",
			"user %d, its owner, cannot create files in %s", owner, path), owner
	default:
		return passed(check, "%s belongs to user %d, and nobody else can change it", path, owner), owner
	}
}

// ownFile is a file that only the server's user may change.
type ownFile struct {
	check, path string
	// owner is the server's user, judging by the owner of the database directory.
	owner uint32
	// misplaced is the remedy if it is not a regular file.
	misplaced string
}

// examine checks the type and owner of the file, and its mode with judge. Other checks find a missing file.
func (f ownFile) examine(judge func(mode fs.FileMode) finding) []finding {
	info, user, err := stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []finding{failedBy(f.check, err)}
	case !info.Mode().IsRegular():
		return []finding{failed(f.check, f.misplaced, "%s is not a regular file", f.path)}
	}
	found := judge(info.Mode().Perm())
	if found.Status != healthFail && user != f.owner {
		found = failed(f.check, fmt.Sprintf("run chown %d on it", f.owner),
			"%s belongs to user %d, not to the server's user %d", f.path, user, f.owner)
	}
	return []finding{found}
}

func (f ownFile) passed() finding {
	return passed(f.check, "%s belongs to user %d, and nobody else has access", f.path, f.owner)
}

// examineSecret is examine for a file that nobody else may read.
func (f ownFile) examineSecret(secret, remedy string) []finding {
	return f.examine(func(mode fs.FileMode) finding {
		if mode&othersMayUse != 0 {
			return failed(f.check, remedy, "others can access the %s in %s", secret, f.path)
		}
		return f.passed()
	})
}

// checkDatabaseFiles checks who can read and write the files of a SQLite database.
func checkDatabaseFiles(path string, owner uint32) (found []finding) {
	const remedy, toChange = "run chmod 600 on it", 0o600
	for _, suffix := range []string{"", "-wal", "-shm"} {
		file := ownFile{"database file", path + suffix, owner, "put the right file in its place, or use another database"}
		found = append(found, file.examine(func(mode fs.FileMode) finding {
			switch {
			case mode&othersMayWrite != 0:
				return failed(file.check, remedy, "others can write to %s", file.path)
			case owner != 0 && mode&toChange != toChange:
				return failed(file.check, remedy, "its owner cannot write to %s", file.path)
			case mode&othersMayRead != 0:
				return warned(file.check, remedy,
					"others can read %s, with its names, settings and token digests", file.path)
			default:
				return file.passed()
			}
		})...)
	}
	return found
}

func checkKeysetFile(path string, owner uint32) []finding {
	const remedy = `run chmod 600 on it, then replace the master key, and run "providerd key rotate --reseal"`
	file := ownFile{"keyset file", path, owner, "put the keyset in its place, or pass its path with --keyset"}
	return file.examineSecret("keys", remedy)
}

// checkInitialToken checks the file of the initial token, if it still exists.
func checkInitialToken(dir string, owner uint32) []finding {
	path := filepath.Join(dir, flags.InitialTokenFile)
	file := ownFile{"initial token", path, owner, "remove it; only the initial token belongs there"}
	return file.examineSecret("token",
		`run chmod 600 on it, then create another token with "providerd token create" and revoke this one`)
}

// stat returns the type and mode of a file, and its owner.
func stat(path string) (fs.FileInfo, uint32, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // It names the operation and the file.
	}
	native, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, 0, fmt.Errorf("the owner of %s is unknown", path)
	}
	return info, native.Uid, nil
}
