package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	// fullDisk is where the server soon refuses creates: below 4 MiB.
	fullDisk = 64 << 20
	// littleSpace is what the WAL and the database may take in some minutes of load.
	littleSpace = 256 << 20
)

const (
	checkOfSpace = "disk space"
	asServer     = "run the doctor as the user of the server or as root"
)

// checkSpace looks whether the disk has room for what comes, and for a copy of the files.
func checkSpace(folder string, files ...string) finding {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return failedBy(checkOfSpace, fmt.Errorf("look at the disk of %s: %w", folder, err))
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // No disk has more than an int64 counts.
	used, err := sizeOf(files...)
	found := judgeSpace(folder, free, used)
	if err != nil && found.Status == healthOK {
		return warned(checkOfSpace, asServer, "%s, and what a copy of the database takes cannot be told: %v",
			found.Finding, err)
	}
	return found
}

// sizeOf returns how many bytes files have together, of which one that is not there has none.
func sizeOf(files ...string) (total int64, err error) {
	for _, path := range files {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err //nolint:wrapcheck // It names the file and what was done.
		}
		total += info.Size()
	}
	return total, nil
}

func judgeSpace(folder string, free, used int64) finding {
	const check, remedy = checkOfSpace, "make room, or move the database to a larger disk"
	switch text := fmt.Sprintf("the disk of %s has %s left", folder, size(free)); {
	case free < fullDisk:
		return failed(check, remedy, "%s", text)
	case free < littleSpace:
		return warned(check, remedy, "%s", text)
	case free < used:
		return warned(check, remedy, "%s, and a copy of the database takes %s", text, size(used))
	default:
		return passed(check, "%s", text)
	}
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	const mebibyte, gibibyte = 1 << 20, 1 << 30
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}

// longWAL is what no server lets the WAL grow to, unless somebody reads an old state of the database.
const longWAL = 128 << 20

const checkOfWAL = "WAL"

// checkWAL looks at the size of a WAL.
func checkWAL(path string) finding {
	length, err := sizeOf(path)
	if err != nil {
		return warned(checkOfWAL, asServer, "its size cannot be told: %v", err)
	}
	return judgeWAL(length)
}

func judgeWAL(length int64) finding {
	if length <= longWAL {
		return passed(checkOfWAL, "it has %s", size(length))
	}
	const remedy = "end whatever keeps the database open to read it, such as sqlite3, and start the server again"
	return warned(checkOfWAL, remedy, "it has grown to %s", size(length))
}

// Magic numbers of file systems (linux/magic.h).
const (
	tmpfs   = 0x01021994
	ramfs   = 0x858458f6
	overlay = 0x794c7630
	nfs     = 0x6969
	smb     = 0x517b
	smb2    = 0xfe534d42
	cifs    = 0xff534d42
)

const checkOfFileSystem = "file system"

// checkFileSystem looks whether what is synced to disk in a folder outlives what may come.
func checkFileSystem(folder string) finding {
	const check, elsewhere = checkOfFileSystem, "move the database to a local disk"
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return failedBy(check, fmt.Errorf("look at the disk of %s: %w", folder, err))
	}
	switch uint32(disk.Type) { //nolint:gosec // Magic numbers have 32 bits.
	case tmpfs, ramfs:
		return warned(check, elsewhere, "%s is kept in memory, and is gone with the machine", folder)
	case overlay:
		return warned(check, "put the database on a volume", "%s is part of a container, and is gone with it", folder)
	case nfs, smb, smb2, cifs:
		return warned(check, elsewhere+", or to PostgreSQL",
			"%s is on another machine: SQLite's WAL and locks do not work over a network", folder)
	default:
		return passed(check, "%s is neither in memory, nor part of a container, nor on another machine", folder)
	}
}
