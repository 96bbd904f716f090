//go:build slow

package shipped_test

import (
	"os"
	"os/exec"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestRunbookQueriesWork runs the queries of the runbooks with psql.
func TestRunbookQueriesWork(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "postgres", "psql")
	url := postgrestest.NewCluster(t).CreateDatabase(t)
	ran := 0
	for _, command := range matches(t, `(?m)^(psql .*)`) {
		shell := exec.CommandContext(t.Context(), "bash", "-euc", command)
		shell.Env = append(os.Environ(), "PROVIDERD_DATABASE="+url)
		processtest.Run(t, shell)
		ran++
	}
	if ran == 0 {
		t.Error("the runbooks have no queries")
	}
}
