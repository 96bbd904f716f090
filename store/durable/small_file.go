package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSmallFile limits the size, in bytes, of files such as keysets and certificate chains.
const maxSmallFile = 1 << 20

// ReadSmallFile returns the content of a regular file of at most 1 MiB. It does not block if the path is a FIFO. Its
// errors are of type *fs.PathError.
func ReadSmallFile(path string) (text []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the file.
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the file.
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	text, err = io.ReadAll(io.LimitReader(file, maxSmallFile+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the file.
	}
	if len(text) > maxSmallFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", maxSmallFile)}
	}
	return text, nil
}
