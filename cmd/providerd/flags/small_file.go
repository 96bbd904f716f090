package flags

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSmallFile is how many bytes a file has at most that is read whole, such as a certificate chain.
const maxSmallFile = 1 << 20

// readSmallFile reads a regular file. Whoever puts something else in its place, such as a FIFO, makes nobody wait. Its
// errors are of the type *fs.PathError.
func readSmallFile(path string) (text []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the file.
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the file.
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	text, err = io.ReadAll(io.LimitReader(file, maxSmallFile+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the file.
	}
	if len(text) > maxSmallFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", maxSmallFile)}
	}
	return text, nil
}
