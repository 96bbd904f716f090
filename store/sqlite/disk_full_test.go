//go:build slow

package sqlite_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// leave fills a disk until so many bytes are free.
func leave(t *testing.T, disk string, want int64) {
	t.Helper()
	var before syscall.Statfs_t
	if err := syscall.Statfs(disk, &before); err != nil {
		t.Fatal(err)
	}
	filler, err := os.CreateTemp(disk, "filler")
	if err != nil {
		t.Fatal(err)
	}
	_, err = filler.Write(make([]byte, max(0, int64(before.Bavail)*before.Bsize-want)))
	if err := errors.Join(err, filler.Close()); err != nil {
		t.Fatal(err)
	}
}

// A backup needs space for itself and, on the disk of the database, a reserve for the WAL: 4 MiB and a quarter of the
// bytes left to copy. Both may be on one disk. A refused or stopped backup leaves nothing.
func TestDiskFullOfBackupOrDatabase(t *testing.T) {
	t.Parallel()
	const size, before, elsewhere = 16 << 20, 9 << 20, 40 << 20
	for name, test := range map[string]struct {
		// isApart puts the backup on its own disk.
		isApart bool
		// database and backup are the free bytes of the disks. If meanwhile is not 0, it is what the disk of the database has
		// free after the first step.
		database, backup, meanwhile int64
		want                        error
	}{
		"one disk for both":                {false, size + before, 0, 0, nil},
		"one disk without the reserve":     {false, size + before/2, 0, 0, database.ErrUnavailable},
		"two disks":                        {true, before, size + before/2, 0, nil},
		"no reserve":                       {true, before / 2, elsewhere, 0, database.ErrUnavailable},
		"no room for the backup":           {true, elsewhere, size / 2, 0, database.ErrUnavailable},
		"a reserve that is gone meanwhile": {true, before, elsewhere, 1 << 20, database.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smallDisk(t)
			place := dir
			if test.isApart {
				place = smallDisk(t)
				leave(t, place, test.backup)
			}
			r, err := createRig(t.Context(), filepath.Join(dir, "test.db"), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.insert("large", size); err != nil {
				t.Fatal(err)
			}
			leave(t, dir, test.database)
			err = r.Backup(t.Context(), filepath.Join(place, "backup.db"), func(done, total int64) {
				if test.meanwhile > 0 && done < total {
					leave(t, dir, test.meanwhile)
				} else if test.want != nil {
					t.Error("a backup without enough space was started")
				}
			}, noCheck)
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "free some space, or back up to another disk") {
				t.Errorf("error is %v, want %v", err, test.want)
			}
			if left, globErr := filepath.Glob(filepath.Join(place, "backup.db*")); globErr != nil || (err == nil) != (len(left) == 1) {
				t.Errorf("files are %v, %v", left, globErr)
			}
			r.close(t)
		})
	}
}
