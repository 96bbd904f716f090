//go:build slow

package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
)

// replicated is a primary with a synchronous standby.
type replicated struct {
	primary, standby *postgrestest.Cluster
	url              string
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	return newReplicatedIn(t, "")
}

// newReplicatedIn is newReplicated with messages in a locale.
func newReplicatedIn(t *testing.T, locale string) *replicated {
	t.Helper()
	primary := postgrestest.NewClusterIn(t, locale)
	r := &replicated{primary: primary, url: primary.CreateDatabase(t)}
	r.standby = primary.AddStandby(t)
	primary.RequireStandbys(t, r.standby)
	return r
}

func keyedCreate(ctx context.Context, opened *store.Store, key string) (replayed bool, err error) {
	request, settings := keyedRequest(key)
	_, replayed, err = opened.CreateOAuth2Provider(ctx, request, settings)
	return replayed, err
}

// keyedValidate is keyedCreate of what is only validated.
func keyedValidate(ctx context.Context, opened *store.Store, key string) (isMade bool, err error) {
	request, settings := keyedRequest(key)
	request.ValidateOnly = true
	_, isMade, err = opened.CreateOAuth2Provider(ctx, request, settings)
	return isMade, err
}

func keyedRequest(key string) (store.CreateRequest, store.OAuth2Settings) {
	return store.CreateRequest{
		Name: key, CreatedBy: "caller", RequestID: uuid.NewString(), IdempotencyKey: &key, BodyDigest: []byte(key),
	}, store.OAuth2Settings{ClientID: key, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}}
}

// While the standby is away, nothing is acknowledged: neither a create, nor the replay of one that is on the primary
// alone, nor that it is there. Once it is back, what was unknown is settled.
func TestNothingIsAcknowledgedWithoutTheStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	keyset := newKeyset(t)
	opened := openStore(t, r.url, keyset)
	if _, err := keyedCreate(t.Context(), opened, "before"); err != nil {
		t.Fatal(err)
	}
	create := func(key string) func(*store.Store) error {
		return func(replica *store.Store) error { _, err := keyedCreate(t.Context(), replica, key); return err }
	}
	tries := map[string]func(*store.Store) error{
		"replay": create("before"), "what hangs": create("hanging"), "new create": create("after"),
		"validation": func(replica *store.Store) error { _, err := keyedValidate(t.Context(), replica, "hanging"); return err },
		"readiness":  func(replica *store.Store) error { return replica.Ready(t.Context()) },
	}
	// Each try has a replica of its own, so that none waits for another. The one that had no answer stores nothing new.
	replicas := map[string]*store.Store{"new create": opened}
	for what := range tries {
		if replicas[what] == nil {
			replicas[what] = openStore(t, r.url, keyset)
		}
	}
	r.standby.Freeze()
	if err := create("hanging")(opened); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("hanging commit: error is %v, want ErrOutcomeUnknown", err)
	}
	// The server lets go of it as an operator would see to it: the record is then there, on the primary alone.
	r.primary.Exec(t, databaseOf(t, r.url),
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	var group sync.WaitGroup
	for what, try := range tries {
		group.Go(func() {
			if err := try(replicas[what]); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("%s: error is %v, want ErrUnavailable", what, err)
			}
		})
	}
	group.Wait()
	r.standby.Thaw()
	awaitReady(t, opened)
	for key, want := range map[string]bool{"before": true, "hanging": true, "after": false} {
		if isMade, err := keyedValidate(t.Context(), opened, key); err != nil || isMade != want {
			t.Errorf("%s: validated as made %v, want %v, %v", key, isMade, want, err)
		}
		if replayed, err := keyedCreate(t.Context(), opened, key); err != nil || replayed != want {
			t.Errorf("%s: replayed is %v, want %v, %v", key, replayed, want, err)
		}
	}
}

// A commit that is cancelled while it waits for the standby is answered with a warning only, and is unknown: in whatever
// language the warning is, and whatever the role wants to hear of.
func TestCancelledCommitIsUnknown(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"", postgrestest.German} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			r := newReplicatedIn(t, locale)
			watching := create(t, r.url)
			for _, test := range []struct{ how, minMessages string }{
				{"pg_cancel_backend", "notice"}, {"pg_terminate_backend", "notice"}, {"pg_terminate_backend", "error"},
			} {
				r.primary.Exec(t, "postgres", "ALTER ROLE postgres SET client_min_messages = "+test.minMessages)
				opened := create(t, r.url)
				r.standby.Freeze()
				committed := make(chan error, 1)
				go func() { committed <- insert(t.Context(), opened, rand.Text()) }()
				awaitWait(t, watching, "SyncRep")
				r.primary.Exec(t, databaseOf(t, r.url),
					"SELECT "+test.how+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
				if err := <-committed; !errors.Is(err, database.ErrOutcomeUnknown) {
					t.Errorf("%v: error is %v, want ErrOutcomeUnknown", test, err)
				}
				r.standby.Thaw()
			}
		})
	}
}

// A role that wants to hear everything gets no more with a commit than any other.
func TestTalkativeServerCommits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	cluster.Exec(t, "postgres", "ALTER ROLE postgres SET log_duration = on")
	for _, level := range []string{"log", "debug1", "debug5"} {
		url := cluster.CreateDatabase(t)
		cluster.Exec(t, "postgres", "ALTER DATABASE "+databaseOf(t, url)+" SET client_min_messages = "+level)
		opened := openStore(t, url, newKeyset(t))
		if _, err := keyedCreate(t.Context(), opened, "a"); err != nil {
			t.Errorf("%s: %v", level, err)
		}
		if err := opened.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
}

// A constraint that is checked at COMMIT refuses it, in whatever language: nothing is stored, and that is known.
func TestRefusedCommitIsKnown(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewClusterIn(t, postgrestest.German)
	url := cluster.CreateDatabase(t)
	opened := create(t, url)
	cluster.Exec(t, databaseOf(t, url), "CREATE TABLE wanted (slug text UNIQUE)",
		"ALTER TABLE applications ADD FOREIGN KEY (slug) REFERENCES wanted (slug) DEFERRABLE INITIALLY DEFERRED")
	err := insert(t.Context(), opened, "refused")
	if err == nil || errors.Is(err, database.ErrOutcomeUnknown) {
		t.Errorf("error is %v, want that of the constraint", err)
	}
	if stored := slugs(t, opened); len(stored) != 0 {
		t.Errorf("stored are %v", stored)
	}
}

// What was committed when the server died is found again, or said to be unknown; what waits for the server is committed
// once it is back.
func TestCommitsSurviveTheServer(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	for _, end := range []func(){cluster.Kill, func() { cluster.Stop(t) }} {
		key := uuid.NewString()
		end()
		created := make(chan error, 1)
		go func() {
			_, err := keyedCreate(t.Context(), opened, key)
			created <- err
		}()
		cluster.Start(t)
		if err := <-created; err != nil {
			t.Errorf("a create that waits for the server: %v", err)
		}
	}
	cluster.Stop(t)
	begun := time.Now()
	if _, err := keyedCreate(t.Context(), opened, "away"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	if took := time.Since(begun); took < 3*time.Second || took > 30*time.Second {
		t.Errorf("the create waits for %v", took)
	}
	cluster.Start(t)
	awaitReady(t, opened)
	if replayed, err := keyedCreate(t.Context(), opened, "away"); err != nil || replayed {
		t.Errorf("replayed is %v, %v", replayed, err)
	}
}

// A program that stands still in the middle of a transaction stalls no other for long: neither one that wants the same
// value, nor any other create.
func TestStuckTransactionStallsNoOther(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	stuck, other := create(t, url), create(t, url)
	begun, released := make(chan struct{}), make(chan struct{})
	stuckError := make(chan error, 1)
	go func() {
		first := true
		stuckError <- commit(t.Context(), stuck, func(tx *gorm.DB) error {
			err := insertApplication(tx, "wanted")
			if first {
				close(begun)
				<-released
				first = false
			}
			return err
		})
	}()
	<-begun
	if err := insert(t.Context(), other, "free"); err != nil {
		t.Errorf("another value: %v", err)
	}
	began := time.Now()
	if err := insert(t.Context(), other, "wanted"); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("the same value: error is %v, want ErrUnavailable", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the same value waits for %v", took)
	}
	close(released)
	if err := <-stuckError; err != nil {
		t.Errorf("the one that was stuck: %v", err)
	}
}

// transactTimeout is far more than what is awaited takes.
const transactTimeout = 60 * time.Second

func awaitReady(t *testing.T, opened *store.Store) {
	t.Helper()
	await(t, "the store is ready", func() bool { return opened.Ready(t.Context()) == nil })
}

// awaitWait waits until a backend waits for something.
func awaitWait(t *testing.T, database *postgres.Database, event string) {
	t.Helper()
	await(t, "a backend waits for "+event, func() bool { return countWaits(t, database, event) > 0 })
}

// countWaits counts the backends that wait for something.
func countWaits(t *testing.T, database *postgres.Database, event string) int {
	t.Helper()
	var count int
	err := database.Reader().WithContext(t.Context()).
		Raw("SELECT count(*) FROM pg_stat_activity WHERE wait_event = ?", event).Scan(&count).Error
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	begun := time.Now()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !isSo() {
		if time.Since(begun) > transactTimeout {
			t.Fatalf("after %v it is not so that %s", transactTimeout, what)
		}
		<-again.C
	}
}
