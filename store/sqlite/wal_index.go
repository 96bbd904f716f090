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

// withoutBackfill returns the wal-index as it is before checkpoints.
func (i walIndex) withoutBackfill() walIndex {
	i.backfilled = 0
	return i
}

// pageNumbers reads, from after the header of a wal-index, in native byte order, the page numbers of at most 16 frames,
// up to the last one. They stay as they are until the WAL is reset.
func (i walIndex) pageNumbers(file *guardedFile) ([]byte, error) {
	if i.frames == 0 {
		return nil, nil
	}
	// The file has blocks of 4096 page numbers and a hash table for them. The header takes 34 numbers of the first block.
	const header, block, blockSize, number = 34, 4096, 32 << 10, 4
	position := int64(i.frames) - 1 + header
	count := min(16, int64(i.frames), position%block+1)
	content := make([]byte, count*number)
	first := position%block + 1 - count
	_, err := file.read(content, position/block*blockSize+first*number)
	return content, err
}

// readWALIndex reads the header of a wal-index. It is not whole while SQLite writes it: another read may succeed.
func readWALIndex(file *guardedFile) (index walIndex, isWhole bool, err error) {
	const size = 48
	var content [2*size + 4]byte
	isLong, err := file.read(content[:], 0)
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

// The sizes of the header of a WAL and of each frame's, in bytes.
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
)

// begins reports whether a file begins as the WAL that the wal-index describes, if there is one.
func (i walIndex) begins(wal *guardedFile) (bool, error) {
	var salts [8]byte
	const offset = 16
	isLong, err := wal.read(salts[:], offset)
	return i.frames == 0 || isLong && salts == i.salts, err
}

// lastPage returns the page number of the last frame in such a file, or 0 if there is no such frame.
func (i walIndex) lastPage(wal *guardedFile) (uint32, error) {
	if i.frames == 0 {
		return 0, nil
	}
	var frame [frameHeaderSize]byte
	isLong, err := wal.read(frame[:], walHeaderSize+int64(i.frames-1)*(frameHeaderSize+i.pageSize))
	if !isLong || [8]byte(frame[8:16]) != i.salts || [8]byte(frame[16:24]) != i.checksum {
		return 0, err
	}
	return binary.BigEndian.Uint32(frame[:4]), nil
}
