// Package console is what commands share: the values of their flags, the database that they open, data on standard
// output, as tables or JSON, and messages, progress and remedies on standard error.
//
// Start with DatabaseFlags, which most commands have, Output for data, and Messages for people.
package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrPrint means that output was lost: the disk is full, or the reader of the pipe is gone.
var ErrPrint = errors.New("print")

// Output buffers standard output. After a write has failed, all later ones fail, including Flush.
type Output struct {
	to     io.Writer
	buffer *bufio.Writer
}

// NewOutput returns a new Output that writes to a writer.
func NewOutput(to io.Writer) *Output { return &Output{to: to, buffer: bufio.NewWriter(to)} }

// Write prints text when the buffer is full or Flush is called. It returns ErrPrint.
func (o *Output) Write(text []byte) (int, error) {
	count, err := o.buffer.Write(text)
	return count, WrapPrintError(err)
}

// Line prints a line.
func (o *Output) Line(text string) error {
	_, err := o.Write([]byte(text + "\n"))
	return err
}

// JSON prints a value as indented JSON with hidden characters escaped.
func (o *Output) JSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("render JSON: %w", err)
	}
	return o.Line(string(EscapeJSON(text)))
}

// FlushLine prints a line immediately.
func (o *Output) FlushLine(text string) error {
	if err := o.Line(text); err != nil {
		return err
	}
	return o.Flush()
}

// Flush writes the buffer. It returns nil only if all output was written.
func (o *Output) Flush() error { return WrapPrintError(o.buffer.Flush()) }

// Sync is Flush, and returns nil only once the output is on disk, if it goes to a regular file.
func (o *Output) Sync() error {
	if err := o.Flush(); err != nil {
		return err
	}
	file, ok := o.to.(*os.File)
	if !ok {
		return nil
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return WrapPrintError(err)
	}
	return WrapPrintError(file.Sync())
}

// WrapPrintError adds ErrPrint to an error; nil stays nil.
func WrapPrintError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrPrint, err)
}

// IsBrokenPipe reports whether standard output is a pipe without a reader, as after head has ended.
func IsBrokenPipe(err error) bool { return errors.Is(err, ErrPrint) && errors.Is(err, syscall.EPIPE) }

// IsNullDevice reports whether a file is the null device. Go replaces a closed standard output by it.
func IsNullDevice(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
