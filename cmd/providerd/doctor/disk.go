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
