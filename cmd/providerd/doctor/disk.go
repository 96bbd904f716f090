package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	// fullDisk is close to the 4 MiB below which the server refuses creates.
	fullDisk = 64 << 20
	// littleSpace is what the WAL and the database may grow by in minutes of load.
	littleSpace = 256 << 20
)

const (
	checkOfSpace = "disk space"
	asServer     = "run the doctor as the server's user or as root"
)

// checkSpace checks whether the disk has room for new records, and for a copy of the files.
func checkSpace(dir string, files ...string) finding {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return failedBy(checkOfSpace, fmt.Errorf("inspect the file system of %s: %w", dir, err))
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // No disk has more bytes than fit.
	used, err := sizeOf(files...)
	found := judgeSpace(dir, free, used)
	if err != nil && found.Status == healthOK {
		return warned(checkOfSpace, asServer, "%s, but the size of the database is unknown: %v",
			found.Finding, err)
	}
	return found
}

// sizeOf returns the total size of files. A missing file counts as empty.
func sizeOf(files ...string) (total int64, err error) {
	for _, path := range files {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err //nolint:wrapcheck // It names the operation and the file.
		}
		total += info.Size()
	}
	return total, nil
}

func judgeSpace(dir string, free, used int64) finding {
	const check, remedy = checkOfSpace, "free up space, or move the database to a larger disk"
	switch text := fmt.Sprintf("%s are free on the disk of %s", size(free), dir); {
	case free < fullDisk:
		return failed(check, remedy, "%s", text)
	case free < littleSpace:
		return warned(check, remedy, "%s", text)
	case free < used:
		return warned(check, remedy, "%s, but a copy of the database needs %s", text, size(used))
	default:
		return passed(check, "%s", text)
	}
}

// size formats a number of bytes for people.
func size(bytes int64) string {
	const mebibyte, gibibyte = 1 << 20, 1 << 30
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}

// longWAL is larger than any WAL, unless a reader keeps the server from resetting it.
const longWAL = 128 << 20

const checkOfWAL = "WAL"

func checkWAL(path string) finding {
	length, err := sizeOf(path)
	if err != nil {
		return warned(checkOfWAL, asServer, "the size of the WAL is unknown: %v", err)
	}
	return judgeWAL(length)
}

func judgeWAL(length int64) finding {
	if length <= longWAL {
		return passed(checkOfWAL, "the size of the WAL is %s", size(length))
	}
	const remedy = "close programs that keep the database open, such as sqlite3, and restart the server"
	return warned(checkOfWAL, remedy, "the WAL has grown to %s", size(length))
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

// checkFileSystem checks whether files in a directory are durable once they are synced.
func checkFileSystem(dir string) finding {
	const check, elsewhere = checkOfFileSystem, "move the database to a local disk"
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return failedBy(check, fmt.Errorf("inspect the file system of %s: %w", dir, err))
	}
	switch uint32(disk.Type) { //nolint:gosec // Magic numbers have 32 bits.
	case tmpfs, ramfs:
		return warned(check, elsewhere, "%s is in memory, and is lost when the machine restarts", dir)
	case overlay:
		return warned(check, "put the database on a volume", "%s is part of a container, and is lost with it", dir)
	case nfs, smb, smb2, cifs:
		return warned(check, elsewhere+", or to PostgreSQL",
			"%s is on a network file system, where SQLite's WAL and locks do not work", dir)
	default:
		return passed(check, "%s is not in memory, in a container or on a network", dir)
	}
}
