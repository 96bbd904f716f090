package durable

import (
	"errors"
	"fmt"
	"io"
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
