//go:build proof

package neighbors_test

import (
	"os/exec"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func managers() []neighbor {
	return []neighbor{{
		"systemd", "the shipped unit, as process 1: killed, frozen, drained, restored, upgraded",
		"Use the [shipped unit](service.md).", func(t *testing.T) (string, counts) {
			test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags", "slow", "-run", "^TestServiceUnderSystemd$", ".")
			test.Dir = providerdtest.Path(t, "cmd/providerd/e2e/shipped")
			processtest.Run(t, test)
			// That test counts the records that are stored at its end.
			return printed(t, `\d+`, "systemctl", "--version"), counts{acknowledged: 4}
		},
	}}
}
