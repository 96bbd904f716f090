package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// keysetName is the file of the keyset beside the database, where no other path is given.
const keysetName = "keyset.json"

// keyring gives the keys of a keyset file and notices when the file changes, so that a running server seals with a new
// key as soon as it is there.
type keyring struct {
	path  string
	mutex sync.Mutex
	keys  *keys
	// file is the keyset file as it was when the keys were read.
	file os.FileInfo
}

// openKeyring reads a keyset file. It returns ErrNoKeyset or ErrKeysetUnusable.
func openKeyring(path string) (*keyring, error) {
	ring := &keyring{path: path}
	if _, err := ring.current(); err != nil {
		return nil, err
	}
	return ring, nil
}

// createKeyring makes a keyset file where there is none. It returns ErrKeysetUnusable or an error of the file system.
func createKeyring(path string) (*keyring, error) {
	ring, err := openKeyring(path)
	if !errors.Is(err, ErrNoKeyset) {
		return ring, err
	}
	made, err := newKeys()
	if err != nil {
		return nil, err
	}
	if err := writeKeys(path, made); err != nil {
		return nil, err
	}
	return openKeyring(path)
}

func writeKeys(path string, made *keys) error {
	content, err := made.marshal()
	if err != nil {
		return err
	}
	return WriteDurably(path, content)
}

// current returns the keys that the file has now. Where the file is away or does not fit, it returns an error instead
// of the keys of before: what would be sealed with keys that are on no disk could never be read again.
func (r *keyring) current() (*keys, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	file, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoKeyset, r.path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	if r.file != nil && isUnchanged(file, r.file) {
		return r.keys, nil
	}
	read, err := readKeys(r.path, file)
	if err != nil {
		return nil, err
	}
	if r.keys != nil && !read.succeed(r.keys) {
		return nil, fmt.Errorf("%w: %s lacks keys that it had before; put them back", ErrKeysetUnusable, r.path)
	}
	r.keys, r.file = read, file
	return read, nil
}

func isUnchanged(file, before os.FileInfo) bool {
	return os.SameFile(file, before) && file.ModTime().Equal(before.ModTime()) && file.Mode() == before.Mode()
}

// maxKeysetBytes bounds a keyset file: each key that was ever added takes about 300 bytes.
const maxKeysetBytes = 1 << 20

func readKeys(path string, file os.FileInfo) (*keys, error) {
	const othersMayRead = 0o077
	switch {
	case !file.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrKeysetUnusable, path)
	case file.Mode().Perm()&othersMayRead != 0:
		return nil, fmt.Errorf("%w: others can read %s; run chmod 600 on it", ErrKeysetUnusable, path)
	case file.Size() > maxKeysetBytes:
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrKeysetUnusable, path, maxKeysetBytes)
	}
	content, err := readRegular(path, maxKeysetBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	}
	read, err := parseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKeysetUnusable, path, err)
	}
	return read, nil
}

// readRegular reads so many bytes of a file at most. Where a FIFO has taken its place, it does not wait for a writer.
func readRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open keyset: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read keyset: %w", err)
	}
	return content, nil
}

// succeed tells whether the keys can read what was made with earlier ones.
func (k *keys) succeed(earlier *keys) bool {
	probe := place{table: "probe"}
	sealed, err := earlier.seal(Secret{}, probe)
	if err != nil {
		return false
	}
	fingerprint, err := earlier.fingerprint(nil)
	if err != nil {
		return false
	}
	_, err = k.unseal(sealed, probe)
	return err == nil && k.matches(fingerprint, nil)
}
