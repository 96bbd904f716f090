package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable/durabletest"
	"example.com/providerd/store/sqlite"
)

// TestMain runs the test binary as one of these programs, because SQLite's locks work between processes. Each reports
// that it is ready and waits for the end of its standard input.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"commit": durabletest.Program(commitMany), "fill-disk": durabletest.Program(fillDisk), "limit-wal": durabletest.Program(limitWAL),
		"read-on-full-disk": durabletest.Program(readOnFullDisk), "back-up": durabletest.Program(backUp),
	})
}

// commitMany opens the database at PATH, then commits the applications NAME0, NAME1 and so on up to COUNT.
func commitMany(ctx context.Context, arguments []string) error {
	count, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := durabletest.AwaitProceed(); err != nil {
		return err
	}
	for i := range count {
		if err := r.commit(ctx, fmt.Sprint(arguments[1], i)); err != nil {
			return err
		}
	}
	return errors.Join(r.batches.Close(), r.Close())
}

// backUp backs up the database at PATH to COPY, and prevents files from growing beyond what is written first.
func backUp(ctx context.Context, arguments []string) error {
	db, err := sqlite.Open(ctx, arguments[0], slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := durabletest.AwaitProceed(); err != nil {
		return err
	}
	steps := 0
	err = db.Backup(ctx, arguments[1], func(done, _ int64) {
		if steps++; steps == 1 {
			err = limitFiles(uint64(done))
		}
	}, func(database.Readable) error { return errors.New("what is not whole is checked") })
	if steps == 0 || !errors.Is(err, database.ErrUnavailable) {
		return fmt.Errorf("after %d steps: error is %w", steps, err)
	}
	return db.Close()
}
