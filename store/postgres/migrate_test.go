//go:build slow

package postgres_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/postgres/postgrestest"
)

// Programs wait for the lock of a killed migration and log that. Only the one that migrates logs the migration.
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
		group.Go(func() {
			if err := openLogging(t, url, logger); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	text := log.String()
	if waiting := strings.Count(text, "waiting for another program to migrate"); waiting != programs ||
		!strings.Contains(text, "program=killed") {
		t.Errorf("%d programs logged that they wait: %s", waiting, text)
	}
	if migrated := strings.Count(text, "migrated the database"); migrated != 1 {
		t.Errorf("%d programs logged that they migrated: %s", migrated, text)
	}
}

// Create warns of a primary whose commits do not wait for a standby.
func TestMissingStandbyIsLogged(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	alone := postgrestest.NewCluster(t).CreateDatabase(t)
	for url, want := range map[string]int{r.url: 0, alone: 1} {
		var log strings.Builder
		err := openLogging(t, url, slog.New(slog.NewTextHandler(&log, nil)))
		if warned := strings.Count(log.String(), "no synchronous standby"); err != nil || warned != want {
			t.Errorf("warned %d times, want %d: %s, %v", warned, want, log.String(), err)
		}
	}
}
