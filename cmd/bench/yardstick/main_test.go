package main_test

import (
	"os/exec"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

func TestSharesOnlyGeneratedCode(t *testing.T) {
	t.Parallel()
	shared := 0
	for name := range strings.Lines(processtest.Run(t, exec.CommandContext(t.Context(), "go", "list", "-deps", "."))) {
		switch inside, isOurs := strings.CutPrefix(strings.TrimSpace(name), "example.com/providerd/"); {
		case isOurs && strings.HasPrefix(inside, "gen/"):
			shared++
		case isOurs && inside != "cmd/bench/yardstick":
			t.Errorf("the yardstick contains %s; an optimization there makes it faster, too", inside)
		}
	}
	processtest.Equal(t, shared, 3, "packages of generated code in the yardstick")
}
