package sqlite

import (
	"bytes"
	"encoding/binary"
)

// walIndex is what SQLite records about the WAL in the header of the wal-index (-shm), which all connections share
// (https://sqlite.org/walformat.html).
type walIndex struct {
	// pageSize is the page size of the database in bytes.
	pageSize int64
	// frames is mxFrame, the number of the last committed frame.
	frames uint32
	// pages is the size of the database in pages after that commit.
	pages uint32
	// backfilled is nBackfill, the number of frames that checkpoints have copied into the database.
	backfilled uint32
	// checksum is the cumulative checksum of the frames up to the last one.
	checksum [8]byte
	// salts are copied into every frame. SQLite changes them each time it resets the WAL.
	salts [8]byte
}

// readWALIndex reads the header of a wal-index. It is not whole while SQLite writes it: another read may succeed.
func readWALIndex(file *guardedFile) (index walIndex, isWhole bool, err error) {
	const size = 48
	content := make([]byte, 2*size+4)
	isLong, err := file.read(content, 0)
	header, native := content[:size], binary.NativeEndian
	const initialized = 12
	if !isLong || err != nil || !bytes.Equal(header, content[size:2*size]) || header[initialized] == 0 {
		return index, false, err
	}
	index = walIndex{
		pageSize: int64(native.Uint16(header[14:])), frames: native.Uint32(header[16:]), pages: native.Uint32(header[20:]),
		backfilled: native.Uint32(content[2*size:]), salts: [8]byte(header[32:40]),
	}
	if index.pageSize == 1 {
		index.pageSize = 1 << 16
	}
	// The wal-index has checksums in native byte order, the WAL in big-endian.
	binary.BigEndian.PutUint32(index.checksum[:4], native.Uint32(header[24:]))
	binary.BigEndian.PutUint32(index.checksum[4:], native.Uint32(header[28:]))
	return index, true, nil
}

// isIndexOf reports whether a file starts as the WAL that the wal-index describes and has its last frame.
func (i walIndex) isIndexOf(wal *guardedFile) (bool, error) {
	if i.frames == 0 {
		return true, nil
	}
	const headerSize, frameHeaderSize = 32, 24
	var header [headerSize]byte
	if isLong, err := wal.read(header[:], 0); !isLong || !bytes.Equal(header[16:24], i.salts[:]) {
		return false, err
	}
	frame := header[:frameHeaderSize]
	isLong, err := wal.read(frame, headerSize+int64(i.frames-1)*(frameHeaderSize+i.pageSize))
	return isLong && bytes.Equal(frame[8:16], i.salts[:]) && bytes.Equal(frame[16:24], i.checksum[:]), err
}
