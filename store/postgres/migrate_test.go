//go:build slow

package postgres_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
)

// createLogging opens and closes the database of a URL.
func createLogging(t *testing.T, url string, logger *slog.Logger) {
	t.Helper()
	opened, err := postgres.Create(t.Context(), parse(t, url), logger)
	if err == nil {
		err = opened.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// What a killed migration has locked is waited for, which is said. Of several programs, the one that migrates says so.
func TestMigrationsTakeTurns(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE TABLE goose_lock (lock_id bigint PRIMARY KEY, locked boolean NOT NULL, locked_at timestamptz,
			locked_by text, lease_expires_at timestamptz, updated_at timestamptz)`,
		fmt.Sprintf("INSERT INTO goose_lock VALUES (%d, true, now(), 'killed', now() + interval '3 seconds', now())",
			lock.DefaultLockID))
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	const programs = 3
	var group sync.WaitGroup
	for range programs {
		group.Go(func() { createLogging(t, url, logger) })
	}
	group.Wait()
	text := log.String()
	if waiting := strings.Count(text, "waiting for another program that migrates"); waiting != programs ||
		!strings.Contains(text, "program=killed") {
		t.Errorf("%d programs say what they wait for: %s", waiting, text)
	}
	if migrated := strings.Count(text, "migrated the database"); migrated != 1 {
		t.Errorf("%d programs say that they have migrated: %s", migrated, text)
	}
}

// A primary whose commits wait for no standby is warned of at the start of a server.
func TestMissingStandbyIsWarnedOf(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	alone := postgrestest.NewCluster(t).CreateDatabase(t)
	for url, want := range map[string]int{r.url: 0, alone: 1} {
		var log strings.Builder
		createLogging(t, url, slog.New(slog.NewTextHandler(&log, nil)))
		if warned := strings.Count(log.String(), "there is no synchronous standby"); warned != want {
			t.Errorf("warned %d times, want %d: %s", warned, want, log.String())
		}
	}
}
