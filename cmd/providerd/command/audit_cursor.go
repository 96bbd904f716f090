package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
)

// cursor is a file with the id and the time of the last printed event. One process at a time can open it.
type cursor struct {
	*os.File
	last store.Cursor
}

// openCursor opens and locks the file at path, which must not be a symbolic link. If root creates it, it belongs to the
// owner of the directory.
func openCursor(path string) (*cursor, error) {
	file, err := files.OpenOrCreate(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	c := &cursor{File: file}
	if err := c.read(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// read locks the file, and reads the event. It refuses what is not a file of its own, and output that is lost. An empty
// file is a new one.
func (c *cursor) read() error {
	const maxText = 64
	info, err := c.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%s is not a regular file; use another file", c.Name()), err)
	}
	if output, err := os.Stdout.Stat(); err != nil || os.SameFile(info, output) || console.IsOutputUnread() {
		return errors.New("standard output is closed, or is the null device or the cursor file, so the events would be " +
			"lost; redirect it to another file")
	}
	if err := syscall.Flock(int(c.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another process; stop that process, or use another file: %w", c.Name(), err)
	}
	text, err := io.ReadAll(io.LimitReader(c, maxText))
	if err != nil || len(text) == 0 {
		return err //nolint:wrapcheck // The error names the file.
	}
	var micros int64
	_, err = fmt.Sscanf(string(text), "%d %d\n", &c.last.ID, &micros)
	if err != nil || c.last.ID < 1 {
		return fmt.Errorf("%s does not contain the id and the time of an event, such as 17 1790000000000000; use another "+
			"file", c.Name())
	}
	c.last.At = database.TimeOf(time.UnixMicro(micros))
	return nil
}

// store writes the last event, and syncs it. Its id is not lower, so it overwrites all digits of the previous id.
func (c *cursor) store(last store.Cursor) error {
	_, err := c.WriteAt(fmt.Appendf(nil, "%d %016d\n", last.ID, last.At.UnixMicro()), 0)
	if err == nil {
		err = c.Sync()
	}
	return err //nolint:wrapcheck // The error names the file.
}
