// Package console is what commands tell people and programs: data on standard output, as tables, JSON or YAML, and
// messages, progress and remedies on standard error. It knows records only as far as it says what to do about an error.
//
// Start with Output for data and Messages for people.
package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrPrint says that standard output did not take all that was printed: its disk is full, or its reader is gone.
var ErrPrint = errors.New("print")

// Output is what a command prints on standard output. A write that fails makes all that follow it fail, Flush included.
type Output struct {
	buffer *bufio.Writer
}

// NewOutput prints to a writer what comes together until Flush.
func NewOutput(to io.Writer) *Output { return &Output{buffer: bufio.NewWriter(to)} }

// Write prints text once enough of it has come together, or Flush is called.
func (o *Output) Write(text []byte) (int, error) {
	count, err := o.buffer.Write(text)
	return count, WrapPrintError(err)
}

// Line prints a text and a line end.
func (o *Output) Line(text string) error {
	_, err := o.Write([]byte(text + "\n"))
	return err
}

// LineNow prints a text and a line end at once.
func (o *Output) FlushLine(text string) error {
	if err := o.Line(text); err != nil {
		return err
	}
	return o.Flush()
}

// Flush hands over what was printed. All of it was taken only where this returns nil.
func (o *Output) Flush() error { return WrapPrintError(o.buffer.Flush()) }

// WrapPrintError makes an error of printing one that is ErrPrint, too; nil stays nil.
func WrapPrintError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrPrint, err)
}

// IsBrokenPipe tells whether standard output is a pipe whose reader has seen enough, as head has.
func IsBrokenPipe(err error) bool { return errors.Is(err, ErrPrint) && errors.Is(err, syscall.EPIPE) }

// IsNullDevice tells whether what is written to a file is lost. Go puts the null device in the place of a standard
// output that is closed, opened as some programs open it for those that they start.
func IsNullDevice(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
