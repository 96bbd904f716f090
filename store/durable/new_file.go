package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// WriteNewFile writes a new file completely or not at all. Only its owner can read it. It never replaces a file. It
// returns the error of write, fs.ErrExist or another file system error.
func WriteNewFile(path string, owner Owner, write func(to io.Writer) error) (err error) {
	if err := CheckNotExist(path); err != nil {
		return err
	}
	draft, err := CreateDraft(path)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := errors.Join(write(draft), Chown(draft.File, owner)); err != nil {
		return err
	}
	return draft.Publish()
}

// OpenOrCreate opens a file for reading and writing, with more flags of os.OpenFile. If there is none, it creates an
// empty one that only its owner can read, for whom OwnerForNew says; the owner of an existing file never changes. It
// returns a file system error.
func OpenOrCreate(path string, flags int) (*os.File, error) {
	owner, err := OwnerForNew(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, flags|os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, flags|os.O_RDWR, 0) //nolint:wrapcheck // The error names the file.
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the file.
	}
	if err := Chown(file, owner); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
