package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

const (
	othersMayWrite = 0o022
	othersMayRead  = 0o044
	othersMayUse   = 0o077
)

// checkFolder looks who can replace the files of a folder, of which it returns the owner.
func checkFolder(path string) (found finding, owner uint32) {
	const check = "folder"
	info, owner, err := lookAt(path)
	if err != nil {
		return failedBy(check, err), 0
	}
	isSticky := info.Mode()&os.ModeSticky != 0
	const toMakeFiles, writable = 0o300, 2
	me := os.Geteuid()
	switch {
	case !info.IsDir():
		return failed(check, "name another place for the database", "%s is no folder", path), owner
	case info.Mode().Perm()&othersMayWrite != 0 && !isSticky:
		return failed(check, "run chmod go-w on it", "others can replace what is in %s", path), owner
	case me != 0 && uint32(me) != owner: //nolint:gosec // A user's number is not negative.
		return warned(check, "run the doctor as the user of the server", "%s belongs to user %d, and this is user %d",
			path, owner, me), owner
	case errors.Is(syscall.Access(path, writable), syscall.EROFS):
		return failed(check, console.MountToWrite, "%s is on a disk that is mounted read-only", path), owner
	case owner != 0 && info.Mode().Perm()&toMakeFiles != toMakeFiles:
		return failed(check, "run chmod u+rwx on it",
			"user %d, whom it belongs to, cannot make files in %s", owner, path), owner
	default:
		return passed(check, "%s belongs to user %d, and others cannot change it", path, owner), owner
	}
}

// ownFile is a file that only the server's user may change.
type ownFile struct {
	check, path string
	// owner is whom the server runs as, to judge by the folder of its database.
	owner uint32
	// misplaced says what to do about anything else in its place.
	misplaced string
}

// examine looks what the file is, and whose. Of its mode, judge says what is wrong. A file that is missing is for
// others to see.
func (f ownFile) examine(judge func(mode fs.FileMode) finding) []finding {
	info, user, err := lookAt(f.path)
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
			"%s belongs to user %d, and the server, by its folder, to user %d", f.path, user, f.owner)
	}
	return []finding{found}
}

func (f ownFile) passed() finding {
	return passed(f.check, "%s belongs to user %d, and nobody else can use it", f.path, f.owner)
}

// examineSecret is examine for a file that nobody else may even read.
func (f ownFile) examineSecret(secret, remedy string) []finding {
	return f.examine(func(mode fs.FileMode) finding {
		if mode&othersMayUse != 0 {
			return failed(f.check, remedy, "others can use the %s in %s", secret, f.path)
		}
		return f.passed()
	})
}

// checkDatabaseFiles looks who can use the files of a SQLite database.
func checkDatabaseFiles(path string, owner uint32) (found []finding) {
	const remedy, toChange = "run chmod 600 on it", 0o600
	for _, suffix := range []string{"", "-wal", "-shm"} {
		file := ownFile{"database file", path + suffix, owner, "put the right file in its place, or name another database"}
		found = append(found, file.examine(func(mode fs.FileMode) finding {
			switch {
			case mode&othersMayWrite != 0:
				return failed(file.check, remedy, "others can write to %s", file.path)
			case owner != 0 && mode&toChange != toChange:
				return failed(file.check, remedy, "its owner cannot change %s", file.path)
			case mode&othersMayRead != 0:
				return warned(file.check, remedy,
					"others can read %s, and in it names, settings and the digests of tokens", file.path)
			default:
				return file.passed()
			}
		})...)
	}
	return found
}

func checkKeysetFile(path string, owner uint32) []finding {
	const remedy = `run chmod 600 on it, then "providerd key rotate" and "providerd key reseal"`
	file := ownFile{"keyset file", path, owner, "put the keyset in its place, or name its file"}
	found := file.examineSecret("keys", remedy)
	// An error of Glob speaks of the path as a pattern. What "key retire" has kept is then left out.
	kept, _ := filepath.Glob(path + ".retired-*")
	for _, path := range kept {
		file.path = path
		isOK := func(one finding) bool { return one.Status == healthOK }
		found = append(found, slices.DeleteFunc(file.examineSecret("keys", remedy), isOK)...)
	}
	return found
}

// checkInitialToken looks at the token of the first start, where its file is still there.
func checkInitialToken(folder string, owner uint32) []finding {
	path := filepath.Join(folder, flags.InitialTokenFile)
	file := ownFile{"initial token", path, owner, "remove it: the token of a first start belongs there"}
	return file.examineSecret("access token",
		`run chmod 600 on it, then make another token by "providerd token create" and revoke that one`)
}

// lookAt returns what a file is, and the number of the user that it belongs to.
func lookAt(path string) (fs.FileInfo, uint32, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // It names the file and what was done.
	}
	native, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, 0, fmt.Errorf("the owner of %s cannot be told", path)
	}
	return info, native.Uid, nil
}
