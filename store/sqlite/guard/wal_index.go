package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The file formats of the wal-index and the WAL (https://sqlite.org/walformat.html).
const (
	walIndexHeaderSize = 48
	// walIndexSize includes both copies of the header and the checkpoint info after them.
	walIndexSize       = 136
	walHeaderSize      = 32
	walFrameHeaderSize = 24
)

// errTorn means that SQLite was writing the wal-index while it was read.
var errTorn = errors.New("the wal-index was read while it was written")

// WALIndex is what SQLite records about the WAL in the header of the wal-index (-shm), which all connections share.
type WALIndex struct {
	// PageSize is the page size of the database in bytes.
	PageSize int64
	// Frames is mxFrame, the number of the last committed frame.
	Frames uint32
	// pages is the size of the database in pages after that commit.
	pages uint32
	// Backfilled is nBackfill, the number of frames that checkpoints have copied into the database.
	Backfilled uint32
	// checksum is the cumulative checksum of the frames up to the last one.
	checksum [8]byte
	// salts are copied into every frame. SQLite changes them each time it resets the WAL.
	salts [8]byte
}

// readWALIndex reads the header of a wal-index into scratch. It returns errTorn if another read may succeed.
func readWALIndex(file *os.File, scratch []byte) (WALIndex, error) {
	content := scratch[:walIndexSize]
	if _, err := file.ReadAt(content, 0); err != nil {
		return WALIndex{}, fmt.Errorf("read the wal-index: %w", err)
	}
	header, second := content[:walIndexHeaderSize], content[walIndexHeaderSize:2*walIndexHeaderSize]
	const initialized = 12
	if !bytes.Equal(header, second) || header[initialized] == 0 {
		return WALIndex{}, errTorn
	}
	native := binary.NativeEndian
	index := WALIndex{
		PageSize:   int64(native.Uint16(header[14:])),
		Frames:     native.Uint32(header[16:]),
		pages:      native.Uint32(header[20:]),
		Backfilled: native.Uint32(content[2*walIndexHeaderSize:]),
		salts:      [8]byte(header[32:40]),
	}
	if index.PageSize == 1 {
		index.PageSize = 1 << 16
	}
	// The wal-index stores checksums in native byte order, the WAL in big-endian.
	binary.BigEndian.PutUint32(index.checksum[:4], native.Uint32(header[24:]))
	binary.BigEndian.PutUint32(index.checksum[4:], native.Uint32(header[28:]))
	return index, nil
}

// isWALOf reports whether a file starts as the WAL that the wal-index describes and contains its last frame. It reads
// into scratch.
func (i WALIndex) isWALOf(wal *os.File, scratch []byte) (bool, error) {
	if i.Frames == 0 {
		return true, nil
	}
	header := scratch[:walHeaderSize]
	if ok, err := readFull(wal, header, 0); !ok || !bytes.Equal(header[16:24], i.salts[:]) {
		return false, err
	}
	frame := scratch[:walFrameHeaderSize]
	offset := walHeaderSize + int64(i.Frames-1)*(walFrameHeaderSize+i.PageSize)
	if ok, err := readFull(wal, frame, offset); !ok {
		return false, err
	}
	return bytes.Equal(frame[8:16], i.salts[:]) && bytes.Equal(frame[16:24], i.checksum[:]), nil
}

// readFull fills content and reports whether the file was long enough.
func readFull(file *os.File, content []byte, offset int64) (bool, error) {
	_, err := file.ReadAt(content, offset)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return true, nil
}
