package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"example.com/providerd/store/durable"
)

// Keyring gives the keys of a keyset file and notices when the file changes, so that a running server seals with a new
// key as soon as it is there. It is safe for concurrent use.
type Keyring struct {
	path  string
	mutex sync.Mutex
	keys  *Keys
	// file is the keyset file as it was when the keys were read.
	file os.FileInfo
}

// OpenKeyring reads a keyset file. It returns ErrNoKeyset or ErrKeysetUnusable.
func OpenKeyring(path string) (*Keyring, error) {
	ring := &Keyring{path: path}
	if _, err := ring.Current(); err != nil {
		return nil, err
	}
	return ring, nil
}

// ProvideKeyring reads a keyset file, and makes it where there is none. Programs that do so at a time take turns. What
// root makes belongs to the owner of the folder, who could as well have put another keyset there. It returns
// ErrKeysetUnusable, an error of the file system or that of ctx.
func ProvideKeyring(ctx context.Context, path string) (ring *Keyring, err error) {
	err = durable.WithLock(ctx, filepath.Dir(path), func() error {
		if err := durable.RemoveUnfinished(path); err != nil {
			return err
		}
		if ring, err = OpenKeyring(path); !errors.Is(err, ErrNoKeyset) {
			return err
		}
		ring, err = createKeyring(path)
		return err
	})
	return ring, err
}

// CreateKeyring makes a keyset file with one key, which has the owner that ProvideKeyring gives it. It returns
// ErrKeysetExists for a path where something is, an error of the file system or that of ctx.
func CreateKeyring(ctx context.Context, path string) (ring *Keyring, err error) {
	err = durable.WithLock(ctx, filepath.Dir(path), func() error {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%w: %s", ErrKeysetExists, path))
		}
		ring, err = createKeyring(path)
		return err
	})
	return ring, err
}

func createKeyring(path string) (*Keyring, error) {
	made, err := newKeys()
	if err != nil {
		return nil, err
	}
	owner, err := durable.OwnerFor(path)
	if err != nil {
		return nil, err
	}
	if err := made.write(path, owner); err != nil {
		return nil, err
	}
	return OpenKeyring(path)
}

// Change takes a step. It hands the keys of after it to note, and a function that writes them to the file. Programs
// that do so at a time take turns. Where root does, the file stays with the owner of the one that was read, who knows
// its keys: what has taken its place since could be anybody's.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, an error of the file system, or that of the step, of note or ctx.
func (r *Keyring) Change(ctx context.Context, step Step, note func(after *Keys, write func() error) error) error {
	return durable.WithLock(ctx, filepath.Dir(r.path), func() error {
		before, file, err := r.current()
		if err != nil {
			return err
		}
		after, err := step(before)
		if err != nil {
			return err
		}
		return note(after, func() error { return after.write(r.path, durable.OwnerOf(file)) })
	})
}

func (k *Keys) write(path string, owner durable.Owner) error {
	content, err := k.marshal()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, content, owner)
}

// Current returns the keys that the file has now. Where the file is away or does not fit, it returns ErrNoKeyset or
// ErrKeysetUnusable instead of the keys of before: what would be sealed with keys that are on no disk could never be
// read again.
func (r *Keyring) Current() (*Keys, error) {
	keys, _, err := r.current()
	return keys, err
}

// current is Current that also returns the file that the keys were read from, as it was then.
func (r *Keyring) current() (*Keys, os.FileInfo, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	file, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s; put it back, or name its place with --keyset; without it the secrets of the "+
			"database cannot be read", ErrNoKeyset, r.path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if r.file != nil && isUnchanged(file, r.file) {
		return r.keys, r.file, nil
	}
	read, file, err := readKeys(r.path)
	if err != nil {
		return nil, nil, err
	}
	if r.keys != nil && !read.succeed(r.keys) {
		return nil, nil, fmt.Errorf("%w: %s lacks keys that it had before; put them back", ErrKeysetUnusable, r.path)
	}
	r.keys, r.file = read, file
	return read, file, nil
}

func isUnchanged(file, before os.FileInfo) bool {
	return os.SameFile(file, before) && file.Mode() == before.Mode() &&
		file.Size() == before.Size() && file.ModTime().Equal(before.ModTime())
}

// maxKeysetBytes bounds a keyset file: each key that was ever added takes about 300 bytes.
const maxKeysetBytes = 1 << 20

// readKeys reads a keyset file, and returns what the file was then. Where a FIFO is in its place, it does not wait for
// a writer.
func readKeys(path string) (read *Keys, info os.FileInfo, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	defer func() { _ = file.Close() }()
	if info, err = file.Stat(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if err := checkFile(path, info); err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeysetBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if read, err = parseKeys(content); err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w; put the right one in its place", ErrKeysetUnusable, path, err)
	}
	return read, info, nil
}

func checkFile(path string, info os.FileInfo) error {
	const othersMayRead = 0o077
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file; put the right one in its place", ErrKeysetUnusable, path)
	case info.Mode().Perm()&othersMayRead != 0:
		return fmt.Errorf("%w: others can read %s; run chmod 600 on it", ErrKeysetUnusable, path)
	case info.Size() > maxKeysetBytes:
		return fmt.Errorf("%w: %s has more than %d bytes; put the right one in its place",
			ErrKeysetUnusable, path, maxKeysetBytes)
	default:
		return nil
	}
}

// succeed tells whether the keys can read what was made with earlier ones, and what others may make with those that
// were only added.
func (k *Keys) succeed(earlier *Keys) bool {
	for _, id := range earlier.IDs() {
		if !slices.Contains(k.IDs(), id) {
			return false
		}
	}
	proof, err := earlier.Prove()
	return err == nil && k.Satisfy(proof)
}
