package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.com/providerd/store/files"
)

// The gauges of a backup.
const (
	backupSucceeded   = "providerd_backup_success"
	backupLastSuccess = "providerd_backup_last_success_timestamp_seconds"
	backupSize        = "providerd_backup_size_bytes"
	backupDuration    = "providerd_backup_duration_seconds"
)

// writeBackupMetrics writes the outcome of a backup for the textfile collector of node_exporter. After a failure, the
// figures of the last success stay.
func writeBackupMetrics(path, backup string, begun time.Time, failure error) error {
	values, err := readGauges(path)
	if err != nil {
		return err
	}
	values[backupSucceeded] = 0
	if failure == nil {
		written, err := os.Stat(backup)
		if err != nil {
			return fmt.Errorf("measure backup: %w", err)
		}
		values[backupSucceeded], values[backupSize] = 1, float64(written.Size())
		values[backupLastSuccess], values[backupDuration] = float64(time.Now().Unix()), time.Since(begun).Seconds()
	}
	registry := prometheus.NewRegistry()
	for name, help := range map[string]string{
		backupSucceeded:   "Whether the last backup succeeded.",
		backupLastSuccess: "When the last successful backup was finished.",
		backupSize:        "Size of the last successful backup.",
		backupDuration:    "How long the last successful backup took.",
	} {
		if value, ok := values[name]; ok {
			promauto.With(registry).NewGauge(prometheus.GaugeOpts{Name: name, Help: help}).Set(value)
		}
	}
	if err := prometheus.WriteToTextfile(path, registry); err != nil {
		return fmt.Errorf("write metrics of backup: %w", err)
	}
	return nil
}

// readGauges returns the gauges in a file; none if it does not exist.
func readGauges(path string) (map[string]float64, error) {
	values := map[string]float64{}
	text, err := files.ReadSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read metrics of backup: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s does not contain metrics; use another file: %w", path, err)
	}
	for name, family := range families {
		if !strings.HasPrefix(name, "providerd_backup_") {
			return nil, fmt.Errorf("%s contains metrics of other programs; use another file", path)
		}
		for _, metric := range family.GetMetric() {
			values[name] = metric.GetGauge().GetValue()
		}
	}
	return values, nil
}
