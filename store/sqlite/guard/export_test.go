package guard

import "os"

// ErrTorn is errTorn.
var ErrTorn = errTorn

// ReadWALIndex reads the header of a wal-index.
func ReadWALIndex(file *os.File) (WALIndex, error) {
	return readWALIndex(file, make([]byte, walIndexSize))
}

// Salts returns the salts of the WAL.
func (i WALIndex) Salts() [8]byte { return i.salts }

// IsWALOf reports whether a file is the WAL that the wal-index describes.
func (i WALIndex) IsWALOf(wal *os.File) (bool, error) {
	return i.isWALOf(wal, make([]byte, walIndexSize))
}
