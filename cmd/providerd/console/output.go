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

	"golang.org/x/sys/unix"
)

// ErrPrint means that output was lost: the disk is full, or the reader of the pipe is gone.
var ErrPrint = errors.New("print")

// Output buffers standard output. After a write has failed, all later ones fail, including Flush, except in a report.
type Output struct {
	to     io.Writer
	buffer *bufio.Writer
	// IsReport means that a command does more than print: no write fails, so that it continues without a reader.
	IsReport bool
}

// NewOutput returns a new Output that writes to a writer.
func NewOutput(to io.Writer) *Output { return &Output{to: to, buffer: bufio.NewWriter(to)} }

// Write prints text when the buffer is full or Flush is called. It returns ErrPrint.
func (o *Output) Write(text []byte) (int, error) {
	count, err := o.buffer.Write(text)
	if o.IsReport {
		return len(text), nil
	}
	return count, WrapPrintError(err)
}

// Line prints a line.
func (o *Output) Line(text string) error {
	_, err := o.Write([]byte(text + "\n"))
	return err
}

// JSON prints a value, escaped like EscapeJSON, in one line or with an indent.
func (o *Output) JSON(value any, indent string) error {
	encoder := json.NewEncoder(JSONWriter{To: o})
	encoder.SetIndent("", indent)
	return encoder.Encode(value) //nolint:wrapcheck // The values can be encoded, so it is the error of Write.
}

// Flush writes the buffer. It returns nil only if all output was written, except in a report.
func (o *Output) Flush() error {
	if err := o.Lost(); !o.IsReport {
		return err
	}
	return nil
}

// Lost writes the buffer, and returns why output was lost; nil if all was written.
func (o *Output) Lost() error { return WrapPrintError(o.buffer.Flush()) }

// End is Lost after a command has returned err. It returns the error of the command; a report may remain unread.
func (o *Output) End(err error) error {
	switch lost := o.Lost(); {
	case lost == nil, err != nil && !o.IsReport, o.IsReport && IsBrokenPipe(lost):
		return err
	case !o.IsReport:
		return lost
	case err == nil:
		return fmt.Errorf("the command is done, but output was lost: %w", lost)
	default:
		// Not wrapped, because a script that gets the status of a difference relies on the output.
		return fmt.Errorf("%s; output was lost: %w", err.Error(), lost)
	}
}

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

// IsOutputUnread reports whether stdout is a pipe without a reader, or the null device, which Go opens if it is closed.
func IsOutputUnread() bool {
	stdout := []unix.PollFd{{Fd: 1}}
	if _, err := unix.Poll(stdout, 0); err == nil && stdout[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
		return true
	}
	info, err := os.Stdout.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && os.SameFile(info, null)
}
