package providerdtest

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// Need skips a test on a machine that lacks something: why it lacks it, nil where it does not, and the target of the
// Makefile that installs it, "" where none can. Where NOTHING_LEFT_OUT is set, as in make ci, the test fails instead.
func Need(t testing.TB, lack error, target string) {
	t.Helper()
	if lack == nil {
		return
	}
	hint := ""
	if target != "" {
		hint = "; make " + target + " installs what is missing"
	}
	if os.Getenv("NOTHING_LEFT_OUT") != "" {
		t.Fatalf("%v%s", lack, hint)
	}
	t.Skipf("%v%s", lack, hint)
}

// NeedPrograms is Need for programs on the path, or where their path says.
func NeedPrograms(t testing.TB, target string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		_, err := exec.LookPath(program)
		Need(t, err, target)
	}
}

// NeedRoot is Need for what only root can do, such as to mount, or to give files to other users.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Need(t, errors.New("only root can do this"), "")
	}
}
