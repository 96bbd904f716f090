//go:build slow

package postgres_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
)

// logText is a log that may be read while it is written.
type logText struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write adds a line.
func (l *logText) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(line)
}

// count counts the lines with a text.
func (l *logText) count(text string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Count(l.text.String(), text)
}

// createLogging opens and closes the database of a URL.
func createLogging(t *testing.T, url string, log *logText) {
	t.Helper()
	opened, err := postgres.Create(t.Context(), parse(t, url), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Error(err)
		return
	}
	if err := opened.Close(); err != nil {
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
	log := &logText{}
	const programs = 3
	var group sync.WaitGroup
	for range programs {
		group.Go(func() { createLogging(t, url, log) })
	}
	group.Wait()
	if waiting := log.count("waiting for another program that migrates"); waiting != programs ||
		log.count("program=killed") == 0 {
		t.Errorf("%d programs say what they wait for: %s", waiting, &log.text)
	}
	if migrated := log.count("migrated the database"); migrated != 1 {
		t.Errorf("%d programs say that they have migrated: %s", migrated, &log.text)
	}
}

// A primary whose commits wait for no standby is warned of at the start of a server.
func TestMissingStandbyIsWarnedOf(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	alone := postgrestest.NewCluster(t).CreateDatabase(t)
	for url, want := range map[string]int{r.url: 0, alone: 1} {
		log := &logText{}
		createLogging(t, url, log)
		if warned := log.count("there is no synchronous standby"); warned != want {
			t.Errorf("warned %d times, want %d: %s", warned, want, &log.text)
		}
	}
}
