package guard

import (
	"bytes"
	"encoding/binary"
)

// WALIndex is what SQLite records about the WAL in the header of the wal-index (-shm), which all connections share
// (https://sqlite.org/walformat.html).
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

// withoutBackfill returns the wal-index as it is before checkpoints.
func (i WALIndex) withoutBackfill() WALIndex {
	i.Backfilled = 0
	return i
}

// readWALIndex reads the header of a wal-index. It is not whole while SQLite writes it: another read may succeed.
func readWALIndex(file *File) (index WALIndex, isWhole bool, err error) {
	const size = 48
	var content [2*size + 4]byte
	isLong, err := file.read(content[:], 0)
	header, native := content[:size], binary.NativeEndian
	const initialized = 12
	if !isLong || err != nil || !bytes.Equal(header, content[size:2*size]) || header[initialized] == 0 {
		return index, false, err
	}
	index = WALIndex{
		PageSize: int64(native.Uint16(header[14:])), Frames: native.Uint32(header[16:]), pages: native.Uint32(header[20:]),
		Backfilled: native.Uint32(content[2*size:]), salts: [8]byte(header[32:40]),
	}
	if index.PageSize == 1 {
		index.PageSize = 1 << 16
	}
	// The wal-index has checksums in native byte order, the WAL in big-endian.
	binary.BigEndian.PutUint32(index.checksum[:4], native.Uint32(header[24:]))
	binary.BigEndian.PutUint32(index.checksum[4:], native.Uint32(header[28:]))
	return index, true, nil
}

// The page numbers of frames follow the header of a wal-index, in blocks with a hash table behind each. The header
// takes the place of the first numbers of the first block. They stay as they are until the WAL is reset.
const (
	numberSize    = 4
	headerNumbers = 34
	blockNumbers  = 4096
	blockSize     = 32 << 10
)

// sample is the last page numbers of a block, in native byte order; the first ones are 0 if it has fewer.
type sample [16]uint32

// lastPlace returns the block of the last frame's page number, and how many numbers the block has then.
func (i WALIndex) lastPlace() (block, count int64) {
	position := int64(i.Frames) - 1 + headerNumbers
	return position / blockNumbers, position%blockNumbers + 1
}

// samples reads the sample of each block up to the block of the last frame.
func (i WALIndex) samples(file *File) ([]sample, error) {
	if i.Frames == 0 {
		return nil, nil
	}
	last, count := i.lastPlace()
	samples := make([]sample, last+1)
	for block := range samples[:last] {
		if err := samples[block].read(file, int64(block), blockNumbers); err != nil {
			return nil, err
		}
	}
	return samples, samples[last].read(file, last, count)
}

// read reads the last of the numbers of a block, which are so many.
func (s *sample) read(file *File, block, count int64) error {
	length := min(int64(len(s)), count)
	if block == 0 {
		length = min(length, count-headerNumbers)
	}
	var content [len(s) * numberSize]byte
	if _, err := file.read(content[:length*numberSize], block*blockSize+(count-length)*numberSize); err != nil {
		return err
	}
	for i := range length {
		s[int64(len(s))-length+i] = binary.NativeEndian.Uint32(content[i*numberSize:])
	}
	return nil
}

// The sizes of the header of a WAL and of each frame's, in bytes.
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
)

// begins reports whether a file begins as the WAL that the wal-index describes, if there is one.
func (i WALIndex) begins(wal *File) (bool, error) {
	if i.Frames == 0 {
		return true, nil
	}
	var salts [8]byte
	const offset = 16
	isLong, err := wal.read(salts[:], offset)
	return isLong && salts == i.salts, err
}

// lastPage returns the page number of the last frame in such a file, or 0 if there is no such frame.
func (i WALIndex) lastPage(wal *File) (uint32, error) {
	if i.Frames == 0 {
		return 0, nil
	}
	var frame [frameHeaderSize]byte
	isLong, err := wal.read(frame[:], walHeaderSize+int64(i.Frames-1)*(frameHeaderSize+i.PageSize))
	if !isLong || [8]byte(frame[8:16]) != i.salts || [8]byte(frame[16:24]) != i.checksum {
		return 0, err
	}
	return binary.BigEndian.Uint32(frame[:4]), nil
}
