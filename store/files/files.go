// Package files writes files that are complete after a crash and belong to the user who needs them, reads small ones,
// and lets programs take turns in a directory. It does not know the content of the files.
//
// Start with Create and WithLock. Draft is for files that are written step by step, such as a backup.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// Create writes a new file completely or not at all, and syncs it. Only its owner can read it. It never replaces a
// file. It returns the error of write, fs.ErrExist or another file system error.
func Create(path string, owner Owner, write func(to io.Writer) error) (err error) {
	draft, err := CreateDraft(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Cleanup()) }()
	if err := errors.Join(write(draft), Chown(draft.File, owner)); err != nil {
		return err
	}
	return draft.Publish()
}

// Draft is a file being written under a hidden, temporary name in the directory of its final path. Only the user that
// runs the program can read it, unless Chown gives it to another one. Cleanup closes it and removes the temporary name.
type Draft struct {
	*renameio.PendingFile
	path string
}

// CreateDraft creates the draft of a new file. It returns fs.ErrExist if the path is taken, or a file system error.
func CreateDraft(path string) (*Draft, error) {
	if strings.HasSuffix(path, "/") {
		return nil, fmt.Errorf("%s is a directory; add the name of a file", path)
	}
	if exists, err := Exists(path); err != nil {
		return nil, err
	} else if exists {
		return nil, fmt.Errorf("%w: %s; choose a path that does not exist", fs.ErrExist, path)
	}
	return CreateDraftOver(path)
}

// CreateDraftOver creates the draft of a file that may replace another one. It returns a file system error.
func CreateDraftOver(path string) (*Draft, error) {
	pending, err := renameio.TempFile(filepath.Dir(path), path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write %s: directory %s does not exist; create it first", path, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &Draft{pending, path}, nil
}

// Publish syncs the file and gives it its name. It returns fs.ErrExist if that is taken, or a file system error.
func (d *Draft) Publish() error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	// Unlike a rename, a link replaces nothing.
	return link(d.Name(), d.path)
}

// Replace is Publish for a name that is taken. The existing file is renamed to kept, in the same directory. The name
// refers to one of the two files at any time. It returns fs.ErrExist if the name kept is taken, or a file system error.
func (d *Draft) Replace(kept string) error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	if err := link(d.path, kept); err != nil {
		return err
	}
	if err := d.CloseAtomicallyReplace(); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", d.path, err), os.Remove(kept))
	}
	return syncDir(filepath.Dir(d.path))
}

// link gives a file another name that survives a crash, or none.
func link(path, name string) error {
	err := os.Link(path, name)
	if errors.Is(err, syscall.EPERM) && isOwn(path) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("write %s: its file system has no hard links; use a directory on one that has them", name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncName(name)
}

// isOwn reports whether this user owns a file, or is root. Linux can refuse links to files of other users.
func isOwn(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (os.Geteuid() == 0 || OwnerOf(info).user == os.Geteuid())
}

// CreateDir creates the directory of a database and its missing parents, which only their owner can enter and which
// survive a crash. It does nothing if there is one. It returns a file system error.
func CreateDir(path string) error {
	parent := filepath.Dir(path)
	_, err := os.Stat(path)
	isMissing := errors.Is(err, fs.ErrNotExist) && parent != path
	if isMissing {
		if err := CreateDir(parent); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("create the database directory: %w", err)
	}
	if isMissing {
		return syncName(path)
	}
	return nil
}

// syncName makes the name of a new file or directory survive a crash, or removes it.
func syncName(name string) error {
	if err := syncDir(filepath.Dir(name)); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// syncDir makes the names in a directory survive a crash.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// OpenOrCreate opens a file for reading and writing, with more flags of os.OpenFile. If there is none, it creates an
// empty one that only its owner can read, for whom OwnerFor says; the owner of an existing file never changes. It
// returns a file system error.
func OpenOrCreate(path string, flags int) (*os.File, error) {
	owner, err := OwnerFor(path)
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

// maxSmall limits the size, in bytes, of files such as keysets and certificate chains.
const maxSmall = 1 << 20

// ReadSmall reads a regular file of at most 1 MiB. It does not block on a FIFO. Its errors are of type *fs.PathError.
func ReadSmall(path string) ([]byte, error) { return readSmall(path, 0) }

// ReadInput is ReadSmall, and also reads pipes, such as <(pass show NAME) of a shell. A FIFO without a writer is empty.
func ReadInput(path string) ([]byte, error) { return readSmall(path, fs.ModeNamedPipe) }

func readSmall(path string, other fs.FileMode) (text []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // The error names the file.
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode().Type() != other {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxSmall+1))
	}
	if err == nil && len(text) > maxSmall {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", maxSmall)}
	}
	return text, err
}

// lockRetry is the interval between attempts to lock a directory.
const lockRetry = 20 * time.Millisecond

// WithLock calls work while holding the lock of a directory. Work must not lock another directory: programs that lock
// two in different orders would deadlock. It returns the error of work or ctx, or a file system error.
func WithLock(ctx context.Context, dir string, work func() error) (err error) {
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("lock directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return work()
}

// Text returns the content of a text file without the byte order mark and the final line break that editors add.
func Text(content []byte) string {
	text := strings.TrimPrefix(string(content), "\ufeff")
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// Resolve returns the absolute path of a file without symbolic links. The file need not exist.
func Resolve(path string) string {
	if dir, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		// filepath.Join would apply a ".." to the name of a link instead of its target.
		path = dir + "/" + path
	}
	resolved, err := securejoin.SecureJoin("/", path)
	if err != nil {
		return filepath.Clean(path)
	}
	return resolved
}

// Exists reports whether there is anything at path, including a dangling symbolic link. It returns a file system error.
func Exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether %s exists: %w", path, err)
	}
	return true, nil
}
