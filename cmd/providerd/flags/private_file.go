package flags

import (
	"errors"
	"fmt"
	"io"

	"example.com/providerd/store/durable"
)

// FilePath is where a file is to be.
type FilePath string

// UnmarshalText refuses an empty path, as a variable has that is not set, and what is no file of a person's own.
func (p *FilePath) UnmarshalText(text []byte) error {
	*p = FilePath(text)
	return CheckFileName(string(text))
}

// WritePrivateFile puts a file in its place whole, or not at all. Only its owner can read it, which is who runs the
// program: what is in it may be more than others are to know. It replaces none: whatever is there may have more than is
// written now, such as keys.
func WritePrivateFile(path string, write func(to io.Writer) error) (err error) {
	if err := durable.CheckNotExist(path); err != nil {
		return err
	}
	draft, err := durable.CreateDraft(path)
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := write(draft); err != nil {
		return err
	}
	if err := draft.Publish(); err != nil {
		return fmt.Errorf("put the file in its place: %w", err)
	}
	return nil
}
