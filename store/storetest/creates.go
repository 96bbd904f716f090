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
)

func testCreates(t *testing.T, database *store.Store) {
	checkCreates(t, database)
}

func testCreatesOfTwoStores(t *testing.T, first, second *store.Store) {
	checkCreates(t, first, second)
}

// checkCreates compares rounds of creates, those of a round at a time, with the model. All checks share the database: each
// has callers and client_ids of its own.
func checkCreates(t *testing.T, stores ...*store.Store) {
	t.Helper()
	number := 0
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		number++
		check := &createsCheck{
			prefix: fmt.Sprint(number, "/"), begun: time.Now(), stores: stores,
			highest: make([]int32, len(stores)), model: newModel(),
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
	highest []int32
	model   *model
}

// draw makes up a create. There are so few values that many are the same.
func (c *createsCheck) draw(t *rapid.T) *try {
	one := &try{request: store.CreateRequest{
		Name:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
		CreatedBy: c.prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "caller"),
	}}
	if key := rapid.SampledFrom([]string{"", "", "a", "b", "B"}).Draw(t, "key"); key != "" {
		one.request.IdempotencyKey = &key
		one.request.BodyDigest = []byte(rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "body"))
	}
	one.request.ValidateOnly = rapid.IntRange(0, 3).Draw(t, "validate only") == 0
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		settings := fullWorkspaceDirectory()
		one.directory = &settings
		return one
	}
	settings := fullOAuth2(c.prefix + rapid.StringMatching("[a-dA-D]").Draw(t, "client_id"))
	one.oauth2 = &settings
	return one
}

// round makes some creates at a time, each in one of the stores.
func (c *createsCheck) round(ctx context.Context, t *rapid.T) {
	tries := make([]*try, rapid.IntRange(1, 16).Draw(t, "creates"))
	for i := range tries {
		tries[i] = c.draw(t)
	}
	concurrently(len(tries), func(i int) { tries[i].create(ctx, c.stores[i%len(c.stores)]) })
	before := append([]int32(nil), c.highest...)
	for i, one := range tries {
		if !one.isStored() {
			continue
		}
		at := i % len(c.stores)
		pk := one.record.Common().PK
		if pk <= before[at] {
			t.Errorf("pk %d follows %d in the same store", pk, before[at])
		}
		c.highest[at] = max(c.highest[at], pk)
	}
	for _, one := range c.model.settle(tries) {
		t.Errorf("no order of creates explains replayed %v, error %v of %+v, key %+v; only validated %v",
			one.replayed, one.err, one.record, one.scope(), one.request.ValidateOnly)
	}
}

func (t *try) create(ctx context.Context, database *store.Store) {
	if t.oauth2 != nil {
		t.record, t.replayed, t.err = database.CreateOAuth2Provider(ctx, t.request, *t.oauth2)
		return
	}
	t.record, t.replayed, t.err = database.CreateWorkspaceDirectoryProvider(ctx, t.request, *t.directory)
}

// stored compares what is stored with the model. The events tell of every common row, whatever else is missing.
func (c *createsCheck) stored(ctx context.Context, t *rapid.T, database *store.Store) {
	created := 0
	for event, err := range database.Events(ctx, store.Filter{Since: c.begun}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(event.CreatedBy, c.prefix) {
			continue
		}
		created++
		want := c.model.records[int32(event.ID)]
		if record, err := database.Provider(ctx, int32(event.ID)); err != nil || !reflect.DeepEqual(record, want) {
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
