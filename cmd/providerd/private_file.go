package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"example.com/providerd/store/durable"
)

// filePath is where a file is to be.
type filePath string

// UnmarshalText refuses an empty path, as a variable has that is not set.
func (p *filePath) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must not be empty")
	}
	*p = filePath(text)
	return nil
}

// writePrivately puts a file in its place whole, or not at all. Only its owner can read it, which is who runs the
// program, whomever the file belongs to that it replaces: what is in it may be more than they are to know.
func writePrivately(path string, write func(to io.Writer) error) (err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the file: %w", err)
	}
	draft, err := durable.CreateDraft(path)
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := write(draft); err != nil {
		return err
	}
	if err := draft.Overwrite(); err != nil {
		return fmt.Errorf("put the file in its place: %w", err)
	}
	return nil
}
