package flags

import (
	"errors"
	"fmt"
	"io"

	"example.com/providerd/store/durable"
)

// FilePath is the path of a file.
type FilePath string

// UnmarshalText makes the checks of CheckFileName.
func (p *FilePath) UnmarshalText(text []byte) error {
	*p = FilePath(text)
	return CheckFileName(string(text))
}

// WritePrivateFile writes a new file completely or not at all. Only its owner, the user of the process, can read it. It
// never replaces a file.
func WritePrivateFile(path string, write func(to io.Writer) error) (err error) {
	if err := durable.CheckNotExist(path); err != nil {
		return err
	}
	draft, err := durable.CreateDraft(path)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := write(draft); err != nil {
		return err
	}
	if err := draft.Publish(); err != nil {
		return fmt.Errorf("publish file: %w", err)
	}
	return nil
}
