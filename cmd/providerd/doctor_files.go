package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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
		return failed(check, mountToWrite, "%s is on a disk that is mounted read-only", path), owner
	case owner != 0 && info.Mode().Perm()&toMakeFiles != toMakeFiles:
		return failed(check, "run chmod u+rwx on it",
			"user %d, whom it belongs to, cannot make files in %s", owner, path), owner
	default:
		return passed(check, "%s belongs to user %d, and others cannot change it", path, owner), owner
	}
}

// checkDatabaseFiles looks who can use the files of a SQLite database.
func checkDatabaseFiles(path string, owner uint32) []finding {
	const check, toChange = "database file", 0o600
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, of, err := lookAt(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return []finding{failedBy(check, err)}
		case !info.Mode().IsRegular():
			return []finding{isNoFile(check, file, "put the right file in its place, or name another database")}
		case info.Mode().Perm()&othersMayWrite != 0:
			return []finding{failed(check, "run chmod 600 on it", "others can write to %s", file)}
		case of != owner:
			return []finding{isForeign(check, file, of, owner)}
		case owner != 0 && info.Mode().Perm()&toChange != toChange:
			return []finding{failed(check, "run chmod 600 on it", "user %d, whom it belongs to, cannot change %s", owner, file)}
		case info.Mode().Perm()&othersMayRead != 0:
			return []finding{warned(check, "run chmod 600 on it",
				"others can read %s, and in it names, settings and the digests of tokens", file)}
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []finding{passed(check, "%s belongs to user %d, and nobody else can use it", path, owner)}
}

// checkKeysetFile looks who can use a keyset file. That it is there is for checkKeyset to see.
func checkKeysetFile(path string, owner uint32) []finding {
	const check = "keyset file"
	info, of, err := lookAt(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []finding{failedBy(check, err)}
	case !info.Mode().IsRegular():
		return []finding{isNoFile(check, path, "put the keyset in its place, or name its file")}
	case info.Mode().Perm()&othersMayUse != 0:
		return []finding{failed(check, `run chmod 600 on it, then "providerd key rotate" and "providerd key reseal"`,
			"others can use the keys in %s", path)}
	case of != owner:
		return []finding{isForeign(check, path, of, owner)}
	default:
		return []finding{passed(check, "%s belongs to user %d, and nobody else can use it", path, owner)}
	}
}

// checkInitialToken looks who can use the token of the first start, where its file is still there.
func checkInitialToken(folder string, owner uint32) []finding {
	const check = "initial token"
	path := filepath.Join(folder, initialTokenFile)
	info, of, err := lookAt(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []finding{failedBy(check, err)}
	case !info.Mode().IsRegular():
		return []finding{isNoFile(check, path, "remove it: the token of a first start belongs there")}
	case info.Mode().Perm()&othersMayUse != 0:
		return []finding{failed(check,
			`run chmod 600 on it, then make another token by "providerd token create" and revoke that one`,
			"others can use the access token in %s", path)}
	case of != owner:
		return []finding{isForeign(check, path, of, owner)}
	default:
		return []finding{passed(check, "nobody but user %d can use %s", owner, path)}
	}
}

// isNoFile is what is found of a folder, a FIFO or the like in the place of a file.
func isNoFile(check, path, remedy string) finding {
	return failed(check, remedy, "%s is not a regular file", path)
}

// isForeign is what is found of a file of another user than the one whose folder the database is in.
func isForeign(check, path string, of, owner uint32) finding {
	return failed(check, fmt.Sprintf("run chown %d on it", owner),
		"%s belongs to user %d, and the server, by its folder, to user %d", path, of, owner)
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
