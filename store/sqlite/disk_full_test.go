//go:build slow

package sqlite_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest/processtest"
)

// smallDisk mounts a small file system. It requires root.
func smallDisk(t *testing.T) string {
	t.Helper()
	processtest.NeedRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		processtest.Must(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	return dir
}

// A backup that finds its disk full fails and leaves nothing, and the database can be used meanwhile and afterwards.
func TestDiskFullOfBackup(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	for _, isApart := range []bool{false, true} {
		dir := smallDisk(t)
		place := dir
		if isApart {
			place = smallDisk(t)
		}
		r, err := createRig(t.Context(), filepath.Join(dir, "test.db"), slog.New(slog.DiscardHandler))
		processtest.Must(t, err)
		processtest.Must(t, r.insert("large", size))
		backup := filepath.Join(place, "backup.db")
		var disk syscall.Statfs_t
		processtest.Must(t, syscall.Statfs(place, &disk))
		filling := make([]byte, int64(disk.Bavail)*disk.Bsize-size/2)
		processtest.Must(t, os.WriteFile(filepath.Join(place, "filler"), filling, 0o600))
		err = r.Backup(t.Context(), backup, noProgress, noCheck)
		processtest.IsError(t, err, database.ErrFull, "back up to "+backup)
		if left, err := filepath.Glob(backup + "*"); err != nil || len(left) > 0 {
			t.Errorf("files are %v, %v", left, err)
		}
		processtest.Must(t, r.commit(t.Context(), "after it"))
		r.close(t)
	}
}
