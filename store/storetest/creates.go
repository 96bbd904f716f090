package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"example.com/providerd/store"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

func testCreates(t *testing.T, database *store.Store) { checkCreates(t, database) }

func testCreatesOfTwoStores(t *testing.T, first, second *store.Store) { checkCreates(t, first, second) }

// checkCreates compares rounds of concurrent creates with the model. All checks share the database, so each has its own
// callers and client_ids.
func checkCreates(t *testing.T, stores ...*store.Store) {
	t.Helper()
	number := 0
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		number++
		check := &createsCheck{
			prefix: fmt.Sprint(number, "/"), begun: time.Now(), stores: stores,
			highest: make([]int64, len(stores)), model: newModel(),
		}
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			check.round(ctx, t)
		}
		check.stored(ctx, t, stores[number%len(stores)])
	})
	// A common row without settings would be damaged.
	stored(t, stores[0])
}

type createsCheck struct {
	prefix  string
	begun   time.Time
	stores  []*store.Store
	highest []int64
	model   *model
}

// draw returns a random create. Its values come from small sets, so that many collide.
func (c *createsCheck) draw(t *rapid.T) *attempt {
	a := &attempt{request: store.CreateRequest{
		Name:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
		CreatedBy: c.prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "caller"),
	}}
	if key := rapid.SampledFrom([]string{"", "", "a", "b", "B"}).Draw(t, "key"); key != "" {
		a.request.IdempotencyKey = &key
	}
	a.request.ValidateOnly = rapid.IntRange(0, 3).Draw(t, "validate only") == 0
	isReworded := rapid.Bool().Draw(t, "is reworded")
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		a.directory = new(FullWorkspaceDirectory())
		if isReworded {
			rewordWorkspaceDirectory(a.directory)
		}
		return a
	}
	clientID := rapid.StringMatching("[a-dA-D]").Draw(t, "client_id")
	// For a key it is mostly the same one, so that many retries are equal.
	if a.request.IdempotencyKey != nil && rapid.IntRange(0, 3).Draw(t, "is retry") > 0 {
		clientID = strings.ToLower(*a.request.IdempotencyKey)
	}
	a.oauth2 = new(FullOAuth2(c.prefix + clientID))
	if isReworded {
		rewordOAuth2(a.oauth2)
	}
	if a.request.Generated = records.Generated(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "generated")); a.omits(records.GeneratedClientID) {
		a.oauth2.ClientID = c.prefix + seal.RandomAlphanumeric(40)
	}
	if a.omits(records.GeneratedSecret) {
		a.oauth2.ClientSecret = seal.NewSecret(seal.RandomAlphanumeric(128))
	}
	return a
}

// round runs some creates concurrently, each in one of the stores.
func (c *createsCheck) round(ctx context.Context, t *rapid.T) {
	attempts := make([]*attempt, rapid.IntRange(1, 16).Draw(t, "creates"))
	for i := range attempts {
		attempts[i] = c.draw(t)
	}
	concurrently(len(attempts), func(i int) { attempts[i].create(ctx, c.stores[i%len(c.stores)]) })
	before := slices.Clone(c.highest)
	for i, a := range attempts {
		if !a.isStored() {
			continue
		}
		at, pk := i%len(c.stores), a.record.Common().PK
		if pk <= before[at] {
			t.Errorf("pk %d follows %d in the same store", pk, before[at])
		}
		c.highest[at] = max(c.highest[at], pk)
	}
	for _, a := range c.model.settle(attempts) {
		t.Errorf("no order of creates explains replayed %v, error %v of %+v, key %+v, validate only %v",
			a.replayed, a.err, a.record, a.scope(), a.request.ValidateOnly)
	}
}

func (a *attempt) create(ctx context.Context, database *store.Store) {
	if a.oauth2 != nil {
		a.record, a.replayed, a.err = database.Providers.CreateOAuth2(ctx, a.request, *a.oauth2)
		return
	}
	a.record, a.replayed, a.err = database.Providers.CreateWorkspaceDirectory(ctx, a.request, *a.directory)
}

// stored compares what is stored with the model. Events list every common row, even if its settings are missing.
func (c *createsCheck) stored(ctx context.Context, t *rapid.T, database *store.Store) {
	created := 0
	for event, err := range database.Events.List(ctx, event.Filter{Since: c.begun}, 0) {
		processtest.Must(t, err)
		if !strings.HasPrefix(event.Caller, c.prefix) {
			continue
		}
		created++
		want := c.model.records[event.Subject]
		if record, err := database.Providers.Get(ctx, event.Subject); err != nil || !reflect.DeepEqual(record, want) {
			t.Errorf("stored is %+v, %v, want %+v", record, err, want)
		}
	}
	processtest.Equal(t, created, len(c.model.records), "stored records")
	for letter := range strings.SplitSeq("abcdABCD", "") {
		_, err := database.Providers.ByClientID(ctx, c.prefix+letter)
		if taken := c.model.clientIDs[c.prefix+letter]; taken != (err == nil) || !taken && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("client_id %s: taken is %v, error is %v", letter, taken, err)
		}
	}
}

// attempt is a create and its outcome.
type attempt struct {
	request   store.CreateRequest
	oauth2    *records.OAuth2Settings
	directory *records.WorkspaceDirectorySettings

	record   records.Record
	replayed bool
	err      error
}

// scope is an idempotency key and what it belongs to, or "" without a key.
func (a *attempt) scope() string {
	if a.request.IdempotencyKey == nil {
		return ""
	}
	return fmt.Sprintf("%q of %q, OAuth2 %v", *a.request.IdempotencyKey, a.request.CreatedBy, a.oauth2 != nil)
}

// isStored reports whether the store returned a new record.
func (a *attempt) isStored() bool { return a.err == nil && !a.replayed && !a.request.ValidateOnly }

// omits reports whether the caller omitted a value, so that the server chose it.
func (a *attempt) omits(value records.Generated) bool { return a.request.Generated&value != 0 }

// rewordOAuth2 changes the order and the repetition of ids in lists, and line ends, but not what they mean.
func rewordOAuth2(settings *records.OAuth2Settings) {
	settings.PropertyMappings, settings.JWKSSources = []uuid.UUID{{4}, {3}}, []uuid.UUID{{6}, {6}}
	settings.RedirectURIs = "https://a.example.com/\nhttps://b.example.com/"
}

func rewordWorkspaceDirectory(settings *records.WorkspaceDirectorySettings) {
	settings.PropertyMappings, settings.PropertyMappingsGroup = []uuid.UUID{{1}, {1}}, []uuid.UUID{{3}, {2}}
}

// isRetryOf reports whether an attempt that uses the key of another requests the same, possibly in other words. An
// omitted value equals a generated one.
func (a *attempt) isRetryOf(first *attempt) bool {
	if a.request.Name != first.request.Name {
		return false
	}
	if a.oauth2 == nil {
		requested, wanted := *a.directory, *first.directory
		rewordWorkspaceDirectory(&requested)
		rewordWorkspaceDirectory(&wanted)
		return reflect.DeepEqual(requested, wanted)
	}
	requested, wanted := *a.oauth2, *first.oauth2
	rewordOAuth2(&requested)
	rewordOAuth2(&wanted)
	if a.omits(records.GeneratedClientID) && first.omits(records.GeneratedClientID) {
		requested.ClientID = first.oauth2.ClientID
	}
	if a.omits(records.GeneratedSecret) && first.omits(records.GeneratedSecret) {
		requested.ClientSecret = first.oauth2.ClientSecret
	}
	return reflect.DeepEqual(requested, wanted)
}

// isAsRequested reports whether the record has the requested values.
func (a *attempt) isAsRequested() bool {
	common := a.record.Common()
	if common.PK <= 0 || common.Name != a.request.Name || common.CreatedBy != a.request.CreatedBy {
		return false
	}
	settings := reflect.ValueOf(a.record).Field(1).Interface()
	if a.oauth2 != nil {
		return reflect.DeepEqual(settings, *a.oauth2)
	}
	return reflect.DeepEqual(settings, *a.directory)
}

// model is the expected state of a database that runs creates one after the other.
type model struct {
	records   map[int64]records.Record
	clientIDs map[string]bool
	// keys holds the attempts that created a record with a key.
	keys map[string]*attempt
}

func newModel() *model {
	return &model{records: map[int64]records.Record{}, clientIDs: map[string]bool{}, keys: map[string]*attempt{}}
}

// explains reports whether the attempt would have the same outcome in the model now.
func (m *model) explains(a *attempt) bool {
	if first := m.keys[a.scope()]; first != nil {
		if !a.isRetryOf(first) {
			reused, ok := errors.AsType[*store.KeyReusedError](a.err)
			return ok && reused.PK == first.record.Common().PK
		}
		return a.err == nil && a.replayed && reflect.DeepEqual(a.record, first.record)
	}
	if a.oauth2 != nil && m.clientIDs[a.oauth2.ClientID] {
		return errors.Is(a.err, store.ErrClientIDTaken)
	}
	if a.request.ValidateOnly {
		return a.err == nil && !a.replayed && a.record.Common().PK == 0
	}
	return a.isStored() && a.isAsRequested() && m.records[a.record.Common().PK] == nil
}

// settle finds an order in which the model gives concurrent attempts the outcomes that they had, and returns the
// attempts that fit into no order.
//
// An attempt that stores nothing comes as early as possible. One that stores a record comes after those with its key
// that were refused for a taken client_id, because after it they would have been replays.
func (m *model) settle(attempts []*attempt) (unexplained []*attempt) {
	for {
		attempts = slices.DeleteFunc(attempts, func(a *attempt) bool { return !a.isStored() && m.explains(a) })
		next := slices.IndexFunc(attempts, func(a *attempt) bool {
			return a.isStored() && m.explains(a) && !slices.ContainsFunc(attempts, func(other *attempt) bool {
				return other.scope() == a.scope() && a.scope() != "" && errors.Is(other.err, store.ErrClientIDTaken)
			})
		})
		if next < 0 {
			return attempts
		}
		a := attempts[next]
		m.records[a.record.Common().PK] = a.record
		if a.oauth2 != nil {
			m.clientIDs[a.oauth2.ClientID] = true
		}
		if a.scope() != "" {
			m.keys[a.scope()] = a
		}
		attempts = slices.Delete(attempts, next, next+1)
	}
}
