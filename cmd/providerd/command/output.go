package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errPrint says that standard output did not take all that was printed: its disk is full, or its reader is gone.
var errPrint = errors.New("print")

// output is what a command prints on standard output. A write that fails makes all that follow it fail, flush included.
type output struct {
	buffer *bufio.Writer
}

func newOutput(to io.Writer) *output { return &output{buffer: bufio.NewWriter(to)} }

// Write prints text once enough of it has come together, or flush is called.
func (o *output) Write(text []byte) (int, error) {
	count, err := o.buffer.Write(text)
	return count, printError(err)
}

// line prints a text and a line end.
func (o *output) line(text string) error {
	_, err := o.Write([]byte(text + "\n"))
	return err
}

// lineNow prints a text and a line end at once.
func (o *output) lineNow(text string) error {
	if err := o.line(text); err != nil {
		return err
	}
	return o.flush()
}

// flush hands over what was printed. All of it was taken only where this returns nil.
func (o *output) flush() error { return printError(o.buffer.Flush()) }

func printError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errPrint, err)
}

// isReaderGone tells whether standard output is a pipe whose reader has seen enough, as head has.
func isReaderGone(err error) bool { return errors.Is(err, errPrint) && errors.Is(err, syscall.EPIPE) }

// isNullDevice tells whether what is written to a file is lost. Go puts the null device in the place of a standard
// output that is closed, opened as some programs open it for those that they start.
func isNullDevice(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
