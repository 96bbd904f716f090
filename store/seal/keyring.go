package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"example.com/providerd/store/durable"
)

// Keyring gives the keys of a keyset file and notices when the file changes, so that a running server seals with a new
// key as soon as it is there. It is safe for concurrent use.
type Keyring struct {
	path string
	// known is what was read last; nil before.
	known atomic.Pointer[contents]
	// reading has a value while one goroutine reads a file that has changed, so that the others need not.
	reading chan struct{}
}

// contents are the keys of a keyset file, and the file as it was when they were read.
type contents struct {
	keys *Keys
	file os.FileInfo
}

// OpenKeyring reads a keyset file. It returns ErrNoKeyset or ErrKeysetUnusable.
func OpenKeyring(path string) (*Keyring, error) {
	ring := &Keyring{path: path, reading: make(chan struct{}, 1)}
	if _, err := ring.refresh(); err != nil {
		return nil, err
	}
	return ring, nil
}

// OpenOrCreateKeyring reads a keyset file, and makes it where there is none. Programs that do so at a time take turns. What
// root makes belongs to the owner of the folder, who could as well have put another keyset there. It returns
// ErrKeysetUnusable, an error of the file system or that of ctx.
func OpenOrCreateKeyring(ctx context.Context, path string) (ring *Keyring, err error) {
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

// CreateKeyring makes a keyset file with one key, which has the owner that OpenOrCreateKeyring gives it. It returns
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
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrKeysetFull, an error of the file system, or that of the step, of note
// or ctx.
func (r *Keyring) Change(ctx context.Context, step Step, note func(after *Keys, write func() error) error) error {
	return durable.WithLock(ctx, filepath.Dir(r.path), func() error {
		before, err := r.current(ctx)
		if err != nil {
			return err
		}
		after, err := step(before.keys)
		if err != nil {
			return err
		}
		return note(after, func() error { return after.write(r.path, durable.OwnerOf(before.file)) })
	})
}

// write replaces the file at path, unless nobody could read it then.
func (k *Keys) write(path string, owner durable.Owner) error {
	content, err := k.marshal()
	if err != nil {
		return err
	}
	if len(content) > maxKeysetBytes {
		return fmt.Errorf("%w: with %d keys, %s would exceed %d bytes",
			ErrKeysetFull, len(k.ids), path, maxKeysetBytes)
	}
	if _, err := parseKeys(content); err != nil {
		return fmt.Errorf("verify the new content of %s: %w", path, err)
	}
	return durable.WriteFile(path, content, owner)
}

// Current returns the keys that the file has now. Where the file is away or does not fit, it returns ErrNoKeyset or
// ErrKeysetUnusable instead of the keys of before: what would be sealed with keys that are on no disk could never be
// read again. While another goroutine reads a file that has changed, it waits for that one, but no longer than ctx
// allows.
func (r *Keyring) Current(ctx context.Context) (*Keys, error) {
	found, err := r.current(ctx)
	if err != nil {
		return nil, err
	}
	return found.keys, nil
}

// current is Current that also returns the file that the keys were read from, as it was then.
func (r *Keyring) current(ctx context.Context) (*contents, error) {
	if known, err := r.unchanged(); known != nil || err != nil {
		return known, err
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for %s to be read: %w", ErrKeysetUnusable, r.path, ctx.Err())
	}
	return r.refresh()
}

// refresh reads the file, unless that was done meanwhile.
func (r *Keyring) refresh() (*contents, error) {
	if known, err := r.unchanged(); known != nil || err != nil {
		return known, err
	}
	read, err := readKeys(r.path)
	if err != nil {
		return nil, err
	}
	if before := r.known.Load(); before != nil && !read.keys.isSuccessorOf(before.keys) {
		return nil, fmt.Errorf("%w: %s lacks keys that it had before; put them back", ErrKeysetUnusable, r.path)
	}
	r.known.Store(read)
	return read, nil
}

// unchanged returns what was read last, or nil where the file is another one now.
func (r *Keyring) unchanged() (*contents, error) {
	file, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; put it back, or pass its path with --keyset; without it the secrets in the "+
			"database cannot be decrypted", ErrNoKeyset, r.path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	known := r.known.Load()
	if known == nil || !isUnchanged(file, known.file) {
		return nil, nil
	}
	return known, nil
}

func isUnchanged(file, before os.FileInfo) bool {
	return os.SameFile(file, before) && file.Mode() == before.Mode() &&
		file.Size() == before.Size() && file.ModTime().Equal(before.ModTime())
}

// maxKeysetBytes bounds a keyset file. A key takes about 330 bytes, and one that was retired about 60.
const maxKeysetBytes = 1 << 20

// readKeys reads a keyset file, and returns what the file was then. Where a FIFO is in its place, it does not wait for
// a writer.
func readKeys(path string) (*contents, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if err := checkFile(path, info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeysetBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if len(content) > maxKeysetBytes {
		return nil, tooLarge(path)
	}
	keys, err := parseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; put the right one in its place", ErrKeysetUnusable, path, err)
	}
	return &contents{keys, info}, nil
}

func checkFile(path string, info os.FileInfo) error {
	const othersMayRead = 0o077
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file; put the right one in its place", ErrKeysetUnusable, path)
	case info.Mode().Perm()&othersMayRead != 0:
		return fmt.Errorf("%w: others can read %s; run chmod 600 on it", ErrKeysetUnusable, path)
	case info.Size() > maxKeysetBytes:
		return tooLarge(path)
	default:
		return nil
	}
}

func tooLarge(path string) error {
	return fmt.Errorf("%w: %s has more than %d bytes; put the right one in its place",
		ErrKeysetUnusable, path, maxKeysetBytes)
}
