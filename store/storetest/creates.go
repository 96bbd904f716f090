package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

func testCreates(t *testing.T, database *store.Store) {
	checkCreates(t, database)
}

func testCreatesOfTwoStores(t *testing.T, first, second *store.Store) {
	checkCreates(t, first, second)
}

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
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		settings := FullWorkspaceDirectory()
		a.directory = &settings
		return a
	}
	settings := FullOAuth2(c.prefix + a.drawClientID(t))
	if a.request.Generated = store.Generated(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "generated")); a.omits(store.GeneratedClientID) {
		settings.ClientID = c.prefix + store.RandomAlphanumeric(40)
	}
	if a.omits(store.GeneratedSecret) {
		settings.ClientSecret = store.NewSecret(store.RandomAlphanumeric(128))
	}
	a.oauth2 = &settings
	return a
}

// round runs some creates concurrently, each in one of the stores.
func (c *createsCheck) round(ctx context.Context, t *rapid.T) {
	attempts := make([]*attempt, rapid.IntRange(1, 16).Draw(t, "creates"))
	for i := range attempts {
		attempts[i] = c.draw(t)
	}
	concurrently(len(attempts), func(i int) { attempts[i].create(ctx, c.stores[i%len(c.stores)]) })
	before := append([]int64(nil), c.highest...)
	for i, a := range attempts {
		if !a.isStored() {
			continue
		}
		at := i % len(c.stores)
		pk := a.record.Common().PK
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
		a.record, a.replayed, a.err = database.CreateOAuth2Provider(ctx, a.request, *a.oauth2)
		return
	}
	a.record, a.replayed, a.err = database.CreateWorkspaceDirectoryProvider(ctx, a.request, *a.directory)
}

// stored compares what is stored with the model. Events list every common row, even if its settings are missing.
func (c *createsCheck) stored(ctx context.Context, t *rapid.T, database *store.Store) {
	created := 0
	for event, err := range database.Events(ctx, store.EventFilter{Since: c.begun}, 0) {
		processtest.Must(t, err)
		if !strings.HasPrefix(event.Caller, c.prefix) {
			continue
		}
		created++
		want := c.model.records[event.Subject]
		if record, err := database.Provider(ctx, event.Subject); err != nil || !reflect.DeepEqual(record, want) {
			t.Errorf("stored is %+v, %v, want %+v", record, err, want)
		}
	}
	if created != len(c.model.records) {
		t.Errorf("%d records are stored, want %d", created, len(c.model.records))
	}
	for letter := range strings.SplitSeq("abcdABCD", "") {
		_, err := database.ProviderByClientID(ctx, c.prefix+letter)
		if taken := c.model.clientIDs[c.prefix+letter]; taken != (err == nil) || !taken && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("client_id %s: taken is %v, error is %v", letter, taken, err)
		}
	}
}

// drawClientID returns one of a few client_ids, and for a key mostly the same one, so that many retries are equal.
func (a *attempt) drawClientID(t *rapid.T) string {
	if a.request.IdempotencyKey != nil && rapid.IntRange(0, 3).Draw(t, "is retry") > 0 {
		return strings.ToLower(*a.request.IdempotencyKey)
	}
	return rapid.StringMatching("[a-dA-D]").Draw(t, "client_id")
}
