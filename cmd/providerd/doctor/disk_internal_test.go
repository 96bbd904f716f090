package doctor

import (
	"regexp"
	"testing"
)

// TestDoctorJudgesDisks uses figures that no disk of a test has.
func TestDoctorJudgesDisks(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, test := range map[string]struct {
		found  finding
		status health
		want   string
	}{
		"full":        {judgeSpace("data", 63*mebibyte, 0), healthFail, "^63 MiB are free on the disk of data$"},
		"nearly full": {judgeSpace("data", 64*mebibyte, 0), healthWarn, "^64 MiB are free on the disk of data$"},
		"no backup":   {judgeSpace("data", 256*mebibyte, 1025*mebibyte), healthWarn, "^256 MiB are free on the disk of data, but a copy of the database needs 1.0 GiB$"},
		"room":        {judgeSpace("data", 256*mebibyte, 256*mebibyte), healthOK, "^256 MiB are free on the disk of data$"},
	} {
		if test.found.Status != test.status || !regexp.MustCompile(test.want).MatchString(test.found.Finding) ||
			(test.found.Remedy == "") != (test.status == healthOK) {
			t.Errorf("%s: got %+v, want %s and %q", name, test.found, test.status, test.want)
		}
	}
}
