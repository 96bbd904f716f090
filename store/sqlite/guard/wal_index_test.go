package guard_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // It is what writes the files.
	"pgregory.net/rapid"

	"example.com/providerd/store/sqlite/guard"
)

// walIndexBytes returns the start of a wal-index with two equal copies of the header.
func walIndexBytes(initialized byte, pageSize uint16, frames, backfilled uint32) []byte {
	content := make([]byte, 136)
	content[12] = initialized
	binary.NativeEndian.PutUint16(content[14:], pageSize)
	binary.NativeEndian.PutUint32(content[16:], frames)
	copy(content[32:], "saltsalt")
	copy(content[48:], content[:48])
	binary.NativeEndian.PutUint32(content[96:], backfilled)
	return content
}

func changed(content []byte, at int) []byte {
	content = bytes.Clone(content)
	content[at]++
	return content
}

func TestReadWALIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := walIndexBytes(1, 4096, 7, 3)
	for name, test := range map[string]struct {
		content  []byte
		pageSize int64
		want     error
	}{
		"complete":           {good, 4096, nil},
		"largest page":       {walIndexBytes(1, 1, 7, 3), 65536, nil},
		"longer file":        {append(bytes.Clone(good), make([]byte, 32<<10)...), 4096, nil},
		"first copy differs": {changed(good, 16), 0, guard.ErrTorn},
		"second differs":     {changed(good, 95), 0, guard.ErrTorn},
		"not initialized":    {walIndexBytes(0, 4096, 7, 3), 0, guard.ErrTorn},
		"truncated":          {good[:135], 0, io.EOF},
		"empty":              {nil, 0, io.EOF},
	} {
		path := filepath.Join(dir, "test.db-shm")
		if err := os.WriteFile(path, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		index, err := guard.ReadWALIndex(openFile(t, path))
		if !errors.Is(err, test.want) || index.PageSize != test.pageSize {
			t.Errorf("%s: page size is %d, want %d; error is %v, want %v", name, index.PageSize, test.pageSize, err, test.want)
		}
		if err == nil && (index.Frames != 7 || index.Backfilled != 3 || index.Salts() != [8]byte([]byte("saltsalt"))) {
			t.Errorf("%s: read %+v", name, index)
		}
	}
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}

// readWALIndex agrees with what SQLite reports and with the WAL file.
func TestWALIndexMatchesSQLite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE texts (content TEXT)"); err != nil {
		t.Fatal(err)
	}
	shm, wal := openFile(t, path+"-shm"), openFile(t, path+"-wal")
	checkpoint := func(t *rapid.T, mode string) (frames, copied uint32) {
		var busy int
		err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied)
		if err != nil {
			t.Fatalf("checkpoint %s: %v", mode, err)
		}
		return frames, copied
	}
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(0, 3).Draw(t, "commits") {
			content := strings.Repeat("0", rapid.SampledFrom([]int{0, 100, 5000, 200_000}).Draw(t, "bytes"))
			if _, err := db.ExecContext(t.Context(), "INSERT INTO texts VALUES (?)", content); err != nil {
				t.Fatal(err)
			}
		}
		mode := rapid.SampledFrom([]string{"NOOP", "PASSIVE", "FULL", "RESTART", "TRUNCATE"}).Draw(t, "checkpoint")
		checkpoint(t, mode)
		frames, copied := checkpoint(t, "NOOP")
		index, err := guard.ReadWALIndex(shm)
		if err != nil || index.Frames != frames || index.Backfilled != copied || index.PageSize != 4096 {
			t.Fatalf("read %+v, %v; SQLite has %d frames, %d of them copied", index, err, frames, copied)
		}
		if ok, err := index.IsWALOf(wal); !ok || err != nil {
			t.Fatalf("the WAL does not belong to %+v, %v", index, err)
		}
		if frames == 0 {
			return
		}
		header := make([]byte, 32)
		if _, err := wal.ReadAt(header, 0); err != nil || index.Salts() != [8]byte(header[16:24]) {
			t.Fatalf("salts %x, in the WAL %x, %v", index.Salts(), header[16:24], err)
		}
	})
	// Close it before the files: closing those releases its locks.
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
