//go:build slow

package shipped_test

import (
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// checkRunbooks runs the commands of the runbooks for alerts, except those for PostgreSQL, with the real systemctl and
// journalctl. A command may find nothing, but it must not be refused.
func (s service) checkRunbooks(t *testing.T) {
	t.Helper()
	refused := regexp.MustCompile(`(?i)command not found|failed to|invalid option|unrecognized option`)
	postgres := regexp.MustCompile(`(?m)^psql .*\n`)
	ran := 0
	blocks := providerdtest.CodeBlocks(readRunbook(t), "sh")
	prepare := blocks[0]
	for _, commands := range blocks[1:] {
		// A runbook may restart the service, which then has another port.
		ops := providerdtest.FindOpsURL(s.run(t, "journalctl --unit providerd --output cat --reverse"))
		commands = strings.ReplaceAll(postgres.ReplaceAllString(commands, ""), "http://127.0.0.1:9464", ops)
		output := s.run(t, "set +e; cd \"$(mktemp --directory)\"\n"+prepare+commands+"true")
		if refused.MatchString(output) {
			t.Errorf("%s: %s", commands, output)
		}
		if strings.Contains(commands, "/healthz") && !strings.HasSuffix(output, `{"status":"ok"}`) {
			t.Errorf("%s: %s", commands, output)
		}
		s.process(t)
		ran++
	}
	if ran < 17 {
		t.Errorf("ran %d blocks, want at least 17", ran)
	}
	s.process(t).ExpectReadiness(t, "ready")
}
