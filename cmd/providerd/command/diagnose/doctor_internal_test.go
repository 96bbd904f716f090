package diagnose

import "testing"

// TestDoctorJudgesDisks uses figures that no disk of a test has.
func TestDoctorJudgesDisks(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, test := range map[string]struct {
		free, used int64
		status     health
		want       string
	}{
		"full":        {63 * mebibyte, 0, healthFail, "63 MiB are free"},
		"nearly full": {64 * mebibyte, 0, healthWarn, "64 MiB are free"},
		"no backup":   {256 * mebibyte, 1025 * mebibyte, healthWarn, "256 MiB are free, but a copy of the database needs 1025 MiB"},
		"room":        {256 * mebibyte, 256 * mebibyte, healthOK, "256 MiB are free"},
	} {
		if status, text := judgeSpace(test.free, test.used); status != test.status || text != test.want {
			t.Errorf("%s: got %s and %q, want %s and %q", name, status, text, test.status, test.want)
		}
	}
}
