package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks are the symbolic links that may lead from one to the next, as in Linux.
const maxLinks = 40

// Resolve returns the absolute path of a file without symbolic links, also of one that is yet to be made.
func Resolve(path string) string {
	if dir, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	return resolve(path, maxLinks)
}

func resolve(path string, links int) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	path = strings.TrimRight(path, "/")
	// What a ".." leads to is known once the links before it are followed.
	dir, name := filepath.Split(path)
	target, err := os.Readlink(path)
	switch {
	case name == "":
		return path
	case err != nil || links == 0:
		return filepath.Join(resolve(cmp.Or(dir, "."), links), name)
	case filepath.IsAbs(target):
		return resolve(target, links-1)
	default:
		return resolve(dir+target, links-1)
	}
}

// Exists tells whether anything is at path, be it a symbolic link that leads nowhere. It returns an error of the file
// system.
func Exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether %s exists: %w", path, err)
	}
	return true, nil
}

// CheckNotExist returns fs.ErrExist where anything is at path, or an error of the file system.
func CheckNotExist(path string) error {
	isThere, err := Exists(path)
	if err == nil && isThere {
		err = fmt.Errorf("%w: %s; choose a path that does not exist", fs.ErrExist, path)
	}
	return err
}

// IsUnfinished tells whether path has the name of a file that is removed where it is found.
func IsUnfinished(path string) bool { return strings.HasSuffix(path, unfinishedSuffix) }
