package doctor

import (
	"regexp"
	"testing"
	"time"
)

// TestDoctorJudgesDisks gives figures that no disk of a test has.
func TestDoctorJudgesDisks(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, test := range map[string]struct {
		found  finding
		status health
		says   string
	}{
		"full":        {judgeSpace("data", 63*mebibyte, 0), healthFail, "^the disk of data has 63 MiB left$"},
		"nearly full": {judgeSpace("data", 64*mebibyte, 0), healthWarn, "^the disk of data has 64 MiB left$"},
		"no backup":   {judgeSpace("data", 256*mebibyte, 1025*mebibyte), healthWarn, "256 MiB left, and a copy of the database takes 1.0 GiB$"},
		"room":        {judgeSpace("data", 256*mebibyte, 256*mebibyte), healthOK, "^the disk of data has 256 MiB left$"},
		"clock":       {checkClockOfServer(time.Now().Add(time.Minute)), healthWarn, "^it is 1m0s apart from that of the database$"},
		"kept WAL":    {judgeWAL(128 * mebibyte), healthOK, "^it has 128 MiB$"},
		"growing WAL": {judgeWAL(128*mebibyte + 1), healthWarn, "^it has grown to 128 MiB$"},
	} {
		if test.found.Status != test.status || !regexp.MustCompile(test.says).MatchString(test.found.Finding) ||
			(test.found.Remedy == "") != (test.status == healthOK) {
			t.Errorf("%s: found is %+v, want %s and %q", name, test.found, test.status, test.says)
		}
	}
}
