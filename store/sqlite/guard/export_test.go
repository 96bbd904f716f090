package guard

import "os"

// ErrTorn says that a wal-index was being written.
var ErrTorn = errTorn

// ReadWALIndex reads the header of a wal-index.
func ReadWALIndex(file *os.File) (WALIndex, error) {
	return readWALIndex(file, make([]byte, walIndexSize))
}

// Salts are those of the WAL.
func (i WALIndex) Salts() [8]byte { return i.salts }

// IsWALOf tells whether a file is the WAL that the index is of.
func (i WALIndex) IsWALOf(wal *os.File) (bool, error) {
	return i.isWALOf(wal, make([]byte, walIndexSize))
}
