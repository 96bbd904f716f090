package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/renameio/v2"

	"example.com/providerd/store/files"
)

// writeBackupMetrics writes the outcome of a backup for the textfile collector of node_exporter. After a failure, the
// figures of the last success stay.
func writeBackupMetrics(path, backup string, begun time.Time, failure error) error {
	gauge := func(name, help string, value any) string {
		name = "providerd_backup_" + name
		return fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n%s %v\n", name, help, name, name, value)
	}
	outcome := func(success int) string { return gauge("success", "1 if the last backup succeeded, else 0.", success) }
	text, err := files.ReadSmall(path)
	_, figures, isOurs := bytes.Cut(text, []byte("# HELP providerd_backup_last"))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read metrics of backup: %w", err)
	case len(text) > 0 && !bytes.HasPrefix(text, []byte("# HELP providerd_backup_")):
		return fmt.Errorf("%s does not contain metrics of backups; use another file", path)
	case failure == nil:
		written, err := os.Stat(backup)
		if err != nil {
			return fmt.Errorf("measure backup: %w", err)
		}
		text = []byte(outcome(1) +
			gauge("last_success_timestamp_seconds", "When the last successful backup finished.", time.Now().Unix()) +
			gauge("size_bytes", "Size of the last successful backup.", written.Size()) +
			gauge("duration_seconds", "How long the last successful backup took.", time.Since(begun).Seconds()))
	case isOurs:
		text = append([]byte(outcome(0)+"# HELP providerd_backup_last"), figures...)
	default:
		text = []byte(outcome(0))
	}
	if err := renameio.WriteFile(path, text, 0o644, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write metrics of backup: %w", err)
	}
	return nil
}
