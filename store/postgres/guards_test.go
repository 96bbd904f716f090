//go:build slow

package postgres_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// guardedLoad creates providers on several connections, and counts the outcomes.
type guardedLoad struct {
	// says is what a create must say that is refused.
	says                  string
	stored, refused, late atomic.Int64
	// isUnsafe is set while a setting is seen to be unsafe.
	isUnsafe atomic.Bool
}

// run creates providers until stop is called.
func (l *guardedLoad) run(t *testing.T, opened *store.Store) (stop func()) {
	t.Helper()
	var callers sync.WaitGroup
	var isEnding atomic.Bool
	for range 4 {
		callers.Go(func() {
			for !isEnding.Load() {
				wasUnsafe := l.isUnsafe.Load()
				err := keylessCreate(t, opened)
				switch {
				case err == nil && wasUnsafe && l.isUnsafe.Load():
					l.late.Add(1)
				case err == nil:
					l.stored.Add(1)
				case strings.Contains(err.Error(), "no response"):
					// A busy server is silent for too long, whatever its settings.
				case !errors.Is(err, database.ErrUnsafe) || !strings.Contains(err.Error(), l.says):
					t.Errorf("error is %v, want ErrUnsafe with %q", err, l.says)
				default:
					l.refused.Add(1)
				}
			}
		})
	}
	return func() {
		isEnding.Store(true)
		callers.Wait()
	}
}

// keylessCreate creates a provider whose key is not looked up first.
func keylessCreate(t *testing.T, opened *store.Store) error {
	t.Helper()
	request, settings := keyedRequest(rand.Text())
	request.IdempotencyKey = nil
	_, _, err := opened.Providers.CreateOAuth2(t.Context(), request, settings)
	return err
}

// awaitMore waits until a counter has grown.
func awaitMore(t *testing.T, counter *atomic.Int64, what string) {
	t.Helper()
	const more = 20
	first := counter.Load()
	processtest.WaitUntil(t, what, func() bool { return counter.Load() >= first+more })
}

// eventless selects how many records have no event.
const eventless = "SELECT (SELECT count(*) FROM providers) - (SELECT count(*) FROM events WHERE event = 'provider created')"

// No create that begins after a reload has made the server unsafe is acknowledged, on open connections either, nor is
// the server ready. Once the setting is safe, creates are stored again.
func TestUnsafeReload(t *testing.T) {
	t.Parallel()
	cluster, direct := newDatabase(t)
	pooled, keyset := postgrestest.NewPgBouncer(t, cluster), newKeyset(t)
	for _, url := range []string{direct, pooled(databaseOf(t, direct))} {
		opened := openStore(t, url, keyset)
		for _, setting := range []string{"fsync", "full_page_writes"} {
			load := guardedLoad{
				says: "setting " + setting + ` is "off", which could lose acknowledged creates or their events; set it to on`,
			}
			stop := load.run(t, opened)
			awaitMore(t, &load.stored, "creates are stored")
			cluster.Set(t, setting, "off")
			load.isUnsafe.Store(true)
			awaitMore(t, &load.refused, "creates are refused")
			processtest.WaitUntil(t, "readiness fails", func() bool {
				err := opened.Ready(t.Context())
				return errors.Is(err, database.ErrUnsafe) && strings.Contains(err.Error(), load.says)
			})
			load.isUnsafe.Store(false)
			cluster.Set(t, setting, "on")
			awaitMore(t, &load.stored, "creates are stored again")
			stop()
			if late := load.late.Load(); late > 0 {
				t.Errorf("%d creates were acknowledged after %s was seen to be off", late, setting)
			}
			awaitReady(t, opened)
		}
	}
}

// A session of a pooler that replicates for another client stores no create, because it would have no event.
func TestReplicatingSession(t *testing.T) {
	t.Parallel()
	cluster, direct := newDatabase(t)
	url := postgrestest.NewPgBouncer(t, cluster)(databaseOf(t, direct))
	opened := openStore(t, url, newKeyset(t))
	processtest.Must(t, inspect(t, url).Reader().Exec("SET session_replication_role = replica").Error)
	const says = `setting session_replication_role is "replica", which could lose acknowledged creates or their events; ` +
		"set it to origin"
	processtest.WaitUntil(t, "a create is refused", func() bool {
		err := keylessCreate(t, opened)
		return errors.Is(err, database.ErrUnsafe) && strings.Contains(err.Error(), says)
	})
	processtest.Equal(t, query[int](t, inspect(t, direct), eventless), 0, "records without an event")
}
