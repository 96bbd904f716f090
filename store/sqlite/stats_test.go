package sqlite_test

import "testing"

// TestStats checks the figures before, between and after two commits and their checkpoint.
func TestStats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if stats := r.Stats(); stats.Readers.MaxOpenConnections != 4 || stats.Writers.MaxOpenConnections != 3 ||
		stats.Writers.InUse != 2 {
		t.Errorf("stats of the connections: %+v", stats)
	}
	before := r.Stats().WAL
	r.largeCommit(t)
	if wal := r.Stats().WAL; wal.Pages < before.Pages+70_000_000/4096 || wal.CopiedPages != before.CopiedPages ||
		wal.Checkpoints != 0 {
		t.Errorf("after a commit, WAL stats: %+v; before: %+v", *wal, *before)
	}
	for r.Stats().WAL.Checkpoints == 0 {
		r.batches.Maintain(t.Context())
	}
	if wal := r.Stats().WAL; wal.CopiedPages != wal.Pages || wal.FailedCheckpoints != 0 {
		t.Errorf("after a checkpoint, WAL stats: %+v", *wal)
	}
	if err := r.commit(t.Context(), "after"); err != nil {
		t.Error(err)
	}
	if wal := r.Stats().WAL; wal.Pages == 0 || wal.Pages > 100 {
		t.Errorf("after the commit that resets it, WAL stats: %+v", *wal)
	}
	r.close(t)
}
