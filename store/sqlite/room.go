package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"example.com/providerd/store/database"
)

// minFreeBytes are what the largest create takes in the WAL and, after the next checkpoint, in the database.
const minFreeBytes = 4 << 20

// freeBytes returns what the disk of a folder has left.
func freeBytes(folder string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, fmt.Errorf("%w: look at the disk of %s: %w", database.ErrUnavailable, folder, err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil //nolint:gosec // No disk has 8 EiB.
}

// demandFree returns ErrUnavailable where the disk of a folder has fewer bytes left.
func demandFree(folder string, want int64) error {
	free, err := freeBytes(folder)
	if err == nil && free < want {
		err = fmt.Errorf("%w: the disk of %s has %d MiB left, and %d are needed",
			database.ErrUnavailable, folder, free>>20, want>>20+1)
	}
	return err
}

// room is where a backup and the WAL of its database grow.
type room struct {
	backup, database string
	isOneDisk        bool
}

func newRoom(backup, databaseFolder string) (room, error) {
	first, firstErr := os.Stat(backup)
	second, secondErr := os.Stat(databaseFolder)
	if err := errors.Join(firstErr, secondErr); err != nil {
		return room{}, fmt.Errorf("look at the disk: %w", err)
	}
	return room{
		backup: backup, database: databaseFolder, isOneDisk: deviceOf(first) == deviceOf(second),
	}, nil
}

func deviceOf(info os.FileInfo) any {
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		return status.Dev
	}
	return nil
}

// walShare is how much slower the WAL grows, at the most creates that were measured, than a backup is written.
const walShare = 4

// check returns ErrUnavailable where a backup that so many bytes are still to come to would take what the server needs.
func (r room) check(rest int64) error {
	reserve := minFreeBytes + rest/walShare
	var err error
	if r.isOneDisk {
		err = demandFree(r.backup, rest+reserve)
	} else {
		err = errors.Join(demandFree(r.backup, rest), demandFree(r.database, reserve))
	}
	if err != nil {
		return fmt.Errorf(
			"%w, for the backup and what comes to the WAL meanwhile; make room, or name a folder on another disk", err)
	}
	return nil
}
