package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// maxSmallFile is how many bytes a file has at most that is read whole, such as a certificate chain.
const maxSmallFile = 1 << 20

// readSmallFile reads a regular file. Whoever puts something else in its place, such as a FIFO, makes nobody wait. Its
// errors are of the type *fs.PathError.
func readSmallFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the file.
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	if info.Size() > maxSmallFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", maxSmallFile)}
	}
	return os.ReadFile(path) //nolint:wrapcheck // It names the file.
}
