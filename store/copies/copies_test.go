//go:build slow

package copies_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/copies"
	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// TestComparisonFindsDifference changes a table between its copy and the comparison, and copies again, while the source
// changes.
func TestComparisonFindsDifference(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for kind, newTarget := range map[string]func(t *testing.T) database.Database{
		"SQLite":     newSQLite,
		"PostgreSQL": func(t *testing.T) database.Database { t.Helper(); return newPostgres(t, cluster) },
	} {
		for table, damage := range map[string]string{
			"providers":    "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 2) WHERE pk = 1",
			"tokens":       "UPDATE tokens SET revoked_at = created_at",
			"applications": "UPDATE applications SET provider_pk = NULL WHERE id = 1",
			"backchannels": "UPDATE backchannels SET application_id = 2 WHERE provider_pk = 3",
			"events":       "UPDATE events SET subject = 1",
		} {
			t.Run(kind+"/"+table, func(t *testing.T) {
				t.Parallel()
				expectDifference(t, &capturing{Database: newTarget(t)}, table, damage)
			})
		}
	}
}

func expectDifference(t *testing.T, target *capturing, table, damage string) {
	source, keyset := filled(t)
	_, err := copies.Copy(t.Context(), source, target, keyset, true, func(done, total int64) {
		if done == total {
			processtest.Must(t, target.tx.Exec(damage).Error)
		}
	}, ignore)
	processtest.IsError(t, err, copies.ErrDiffers, "in table "+table+";")
	change := sync.OnceFunc(func() {
		processtest.Must(t, source.Write(t.Context(), func(tx *gorm.DB) error {
			return tx.Exec("DELETE FROM providers WHERE pk = 9; UPDATE tokens SET name = 'other'").Error
		}))
	})
	copied, err := copies.Copy(t.Context(), source, target, keyset, true, func(int64, int64) { change() }, ignore)
	processtest.Expect(t, err == nil && copied[0].Rows == rowsCopied, "copied again: %v, %v", copied, err)
}

// TestSourceOfCopyChanges adds an event to the source of a copy. Over PostgreSQL, its id is lower than that of an event
// that is copied. Nothing is stored, and the next copy is complete.
func TestSourceOfCopyChanges(t *testing.T) {
	t.Parallel()
	addEvent := func(tx *gorm.DB) error {
		return tx.Create(&event.Event{At: database.TimeOf(time.Now()), Event: event.TokenRevoked}).Error
	}
	cluster := postgrestest.NewCluster(t)
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			source, keyset := filled(t)
			change := func() { processtest.Must(t, source.Write(t.Context(), addEvent)) }
			if kind == "PostgreSQL" {
				file := source
				source = newPostgres(t, cluster)
				processtest.Try(copies.Copy(t.Context(), file, source, keyset, false, ignore, ignore)).Must(t)
				change = commitLater(t, source, addEvent)
				processtest.Must(t, source.Write(t.Context(), addEvent))
			}
			change = sync.OnceFunc(change)
			target := newSQLite(t)
			_, err := copies.Copy(t.Context(), source, target, keyset, false, func(int64, int64) { change() }, ignore)
			processtest.IsError(t, err, copies.ErrSourceChanged, "events were added: 1; stop")
			copied, err := copies.Copy(t.Context(), source, target, keyset, false, ignore, ignore)
			processtest.Expect(t, err == nil && copied[0].Rows == rowsCopied, "copied again: %v, %v", copied, err)
		})
	}
}

func ignore(int64, int64) {}

// commitLater runs statements in a transaction, which the returned function commits.
func commitLater(t *testing.T, db database.Database, statements func(tx *gorm.DB) error) (commit func()) {
	t.Helper()
	written, commits, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- db.Load(t.Context(), func(tx *gorm.DB) error {
			err := statements(tx)
			close(written)
			<-commits
			return err
		})
	}()
	<-written
	return func() {
		close(commits)
		processtest.Must(t, <-ended)
	}
}

// newSQLite returns an empty SQLite database, and newPostgres one in a cluster.
func newSQLite(t *testing.T) database.Database {
	t.Helper()
	opened, err := sqlite.Create(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.DiscardHandler))
	return processtest.Closing(t, opened, err)
}

func newPostgres(t *testing.T, cluster *postgrestest.Cluster) database.Database {
	t.Helper()
	url := processtest.Try(link.ParseURL(cluster.CreateDatabase(t))).Must(t)
	opened, err := postgres.Create(t.Context(), url, slog.New(slog.DiscardHandler))
	return processtest.Closing(t, opened, err)
}

// rowsCopied is the number of providers in a source.
const rowsCopied = 20

// filled returns a SQLite database with providers, and a few rows in the other tables, and its keyset.
func filled(t *testing.T) (db database.Database, keyset string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	storetest.FillSQLite(t, path, rowsCopied)
	storetest.Execute(t, path, `INSERT INTO applications (slug, name, provider_pk) VALUES ('a', 'A', 1), ('b', 'B', 2), ('c', 'C', NULL);
		INSERT INTO backchannels (provider_pk, application_id) VALUES (3, 1), (10, 1);
		INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES
			('ci', 'pvd_a', x'01', '["providers_oauth2_create"]', 1800000000250000, 1800000000250000)`)
	opened, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	return processtest.Closing(t, opened, err), filepath.Join(dir, "keyset.json")
}

// capturing is a database that keeps the transaction of a load.
type capturing struct {
	database.Database
	tx *gorm.DB
}

func (d *capturing) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Database.Load(ctx, func(tx *gorm.DB) error {
		d.tx = tx
		return statements(tx)
	})
}
