package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// Resolve returns the absolute path of a file without symbolic links. The file need not exist.
func Resolve(path string) string {
	if dir, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		// filepath.Join would apply a ".." to the name of a link instead of its target.
		path = dir + "/" + path
	}
	resolved, err := securejoin.SecureJoin("/", path)
	if err != nil {
		return filepath.Clean(path)
	}
	return resolved
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
