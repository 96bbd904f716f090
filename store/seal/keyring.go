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

// Keyring provides the keys of a keyset file and reloads them when the file changes, so that a running server uses a
// new key at once. It is safe for concurrent use.
type Keyring struct {
	path string
	// known is what was read last; nil before the first read.
	known atomic.Pointer[contents]
	// reading holds a value while a goroutine reads a changed file, so that only one does.
	reading chan struct{}
}

// contents are the keys of a keyset file, and the file info from when they were read.
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

// OpenOrCreateKeyring reads a keyset file, and creates it if there is none. Programs that do so concurrently take
// turns. A file that root creates belongs to the owner of the directory, who could have put another keyset there
// anyway. It returns ErrKeysetUnusable, a file system error or that of ctx.
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

// CreateKeyring creates a keyset file with one key, with the same owner as OpenOrCreateKeyring. It returns
// ErrKeysetExists if there is anything at path, a file system error or that of ctx.
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
	keys, err := newKeys()
	if err != nil {
		return nil, err
	}
	owner, err := durable.OwnerFor(path)
	if err != nil {
		return nil, err
	}
	if err := keys.write(path, owner); err != nil {
		return nil, err
	}
	return OpenKeyring(path)
}

// Change applies a step and calls record with the resulting keys and a function that writes them to the file. Programs
// that do so concurrently take turns. If root runs it, the file keeps the owner of the file that was read, who knows
// its keys; what has replaced that file since could belong to anybody.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrKeysetFull, a file system error, or that of step, record or ctx.
func (r *Keyring) Change(ctx context.Context, step Step, record func(after *Keys, write func() error) error) error {
	return durable.WithLock(ctx, filepath.Dir(r.path), func() error {
		before, err := r.current(ctx)
		if err != nil {
			return err
		}
		after, err := step(before.keys)
		if err != nil {
			return err
		}
		return record(after, func() error { return after.write(r.path, durable.OwnerOf(before.file)) })
	})
}

// write replaces the file at path, after checking that the new content can be read back.
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

// Current returns the keys that the file has now. If the file is missing or invalid, it returns ErrNoKeyset or
// ErrKeysetUnusable instead of the previous keys: secrets sealed with keys that are not on disk could never be read
// again. While another goroutine reads a changed file, it waits for the result or for ctx.
func (r *Keyring) Current(ctx context.Context) (*Keys, error) {
	found, err := r.current(ctx)
	if err != nil {
		return nil, err
	}
	return found.keys, nil
}

// current is Current that also returns the file info from when the keys were read.
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

// refresh reads the file, unless another goroutine has done so meanwhile.
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

// unchanged returns what was read last, or nil if the file has changed.
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

// maxKeysetBytes limits a keyset file. A key takes about 330 bytes, a retired one about 60.
const maxKeysetBytes = 1 << 20

// readKeys reads a keyset file and its file info. It does not wait for the writer of a FIFO.
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
	const groupOrOthers = 0o077
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file; put the right one in its place", ErrKeysetUnusable, path)
	case info.Mode().Perm()&groupOrOthers != 0:
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
