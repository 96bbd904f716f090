package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks limits symbolic links that lead to each other, as Linux does.
const maxLinks = 40

// Resolve returns the absolute path of a file without symbolic links. The file need not exist.
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
	// Resolve links before a ".." first, because they decide where it leads.
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

// Exists reports whether there is anything at path, including a dangling symbolic link. It returns a file system error.
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

func checkNotExist(path string) error {
	exists, err := Exists(path)
	if err == nil && exists {
		err = fmt.Errorf("%w: %s; choose a path that does not exist", fs.ErrExist, path)
	}
	return err
}
