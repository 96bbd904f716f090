package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"example.com/providerd/store/database"
)

// minFreeBytes is what the largest create takes in the WAL and, after the next checkpoint, in the database.
const minFreeBytes = 4 << 20

// freeBytes returns the free space on the disk of a directory.
func freeBytes(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("%w: check the disk space of %s: %w", database.ErrUnavailable, dir, err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil //nolint:gosec // No disk has 8 EiB.
}

// requireFree returns ErrUnavailable if the disk of a directory has less free space than wanted.
func requireFree(dir string, want int64) error {
	free, err := freeBytes(dir)
	if err == nil && free < want {
		err = fmt.Errorf("%w: the disk of %s has %d MiB free, but %d MiB are needed",
			database.ErrUnavailable, dir, free>>20, want>>20+1)
	}
	return err
}

// walShare is how much slower the WAL grows, at the highest measured rate of creates, than a backup is written.
const walShare = 4

// checkRoom returns ErrUnavailable if a backup with this many bytes left to write would take the space that the server
// needs for its WAL.
func checkRoom(backupDir, databaseDir string, left int64) error {
	reserve := minFreeBytes + left/walShare
	isSameDisk, err := onSameDisk(backupDir, databaseDir)
	switch {
	case err != nil:
		return fmt.Errorf("compare the disks: %w", err)
	case isSameDisk:
		err = requireFree(backupDir, left+reserve)
	default:
		err = errors.Join(requireFree(backupDir, left), requireFree(databaseDir, reserve))
	}
	if err != nil {
		return fmt.Errorf(
			"%w for the backup and for the WAL, which grows meanwhile; free some space, or back up to another disk", err)
	}
	return nil
}

func onSameDisk(dir, other string) (bool, error) {
	var first, second syscall.Stat_t
	err := errors.Join(syscall.Stat(dir, &first), syscall.Stat(other, &second))
	return first.Dev == second.Dev, err
}
