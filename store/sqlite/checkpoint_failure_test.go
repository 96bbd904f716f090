package sqlite_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"gorm.io/gorm"
)

// largeCommit makes a checkpoint due.
func (r *rig) largeCommit(t *testing.T) {
	t.Helper()
	err := r.inBatch(t.Context(), func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO applications (slug, name) VALUES (hex(randomblob(16)), zeroblob(70000000))").Error
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each failed checkpoint is logged once. The next one copies all frames once the cause is gone.
func TestFailedCheckpointIsLogged(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	r := newLoggedRig(t, slog.New(slog.NewTextHandler(&log, nil)))
	r.largeCommit(t)
	const failed = "checkpoint failed"
	if err := os.Rename(r.path+"-wal", r.path+"-wal.away"); err != nil {
		t.Fatal(err)
	}
	before := sizeOf(t, r.path)
	for !strings.Contains(log.String(), failed) {
		r.batches.Maintain(t.Context())
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "-wal was removed or replaced") {
		t.Errorf("log: %s", text)
	}
	if after := sizeOf(t, r.path); after != before {
		t.Errorf("the database grew from %d to %d bytes, from another WAL", before, after)
	}
	if err := os.Rename(r.path+"-wal.away", r.path+"-wal"); err != nil {
		t.Fatal(err)
	}
	logged := log.String()
	for sizeOf(t, r.path) < 70_000_000 {
		r.batches.Maintain(t.Context())
	}
	if wal := r.Stats().WAL; wal == nil || wal.FailedCheckpoints != uint64(strings.Count(logged, failed)) {
		t.Errorf("stats: %+v; log: %s", wal, logged)
	}
	if err := errors.Join(r.Check(t.Context()), r.commit(t.Context(), "after")); err != nil {
		t.Error(err)
	}
	r.close(t)
	if text := strings.TrimPrefix(log.String(), logged); strings.Contains(text, failed) {
		t.Errorf("log after the repair: %s", text)
	}
}
