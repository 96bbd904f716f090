package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// manyEvents is more than two readings of any sensible size need.
const manyEvents = 510

func testEventsInOrder(t *testing.T, database *store.Store) {
	concurrently(manyEvents, func(i int) {
		// Keys in an order of their own must not become that of the events.
		_, _, err := database.CreateOAuth2Provider(t.Context(), keyed(fmt.Sprint(i*7919%manyEvents), "x"), fullOAuth2(fmt.Sprint(i)))
		if err != nil {
			t.Error(err)
		}
	})
	for i := range manyEvents {
		createToken(t, database)
		if i%100 == 0 {
			createWorkspaceDirectory(t, database)
			if _, err := database.RotateKey(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	tokens := Collect(t, database.Tokens(t.Context()))
	for i := range tokens {
		if err := database.RevokeToken(t.Context(), tokens[i*7919%len(tokens)].ID); err != nil {
			t.Fatal(err)
		}
	}
	events := readEvents(t, database)
	counts := map[store.EventKind]int{}
	var revoked []int64
	for _, event := range events {
		counts[event.Event]++
		if event.Event == store.EventTokenRevoked {
			revoked = append(revoked, event.ID)
		}
	}
	for kind, want := range map[store.EventKind]int{
		store.EventProviderCreated: manyEvents + 6, store.EventTokenCreated: manyEvents, store.EventTokenRevoked: manyEvents,
		store.EventKeyCreated: 1, store.EventKeyRotated: 6,
	} {
		if counts[kind] != want {
			t.Errorf("%d events %q, want %d", counts[kind], kind, want)
		}
	}
	for i, id := range revoked {
		if want := int64(tokens[i*7919%len(tokens)].ID); id != want {
			t.Fatalf("revocation %d is that of %d, want %d", i, id, want)
		}
	}
}

// testEventsWhileCreatesGoOn reads the events again and again. Those of before are all there, in the same order.
func testEventsWhileCreatesGoOn(t *testing.T, database *store.Store) {
	const count = 700
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		concurrently(count, func(i int) {
			_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), fullOAuth2(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
		})
	}()
	var before []store.Event
	for ctx.Err() == nil {
		events := readEvents(t, database)
		// What other replicas commit meanwhile may lie between.
		rest := before
		for _, event := range events {
			if len(rest) > 0 && event == rest[0] {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 {
			t.Fatal("events of before are missing, or in another order")
		}
		before = events
	}
	if events := readEvents(t, database); len(events) != count+1 {
		t.Errorf("%d events, want those of %d creates and a key", len(events), count)
	}
}

// readEvents reads all events, of which none may be there twice or out of order.
func readEvents(t *testing.T, database *store.Store) []store.Event {
	t.Helper()
	type name struct {
		event store.EventKind
		id    int64
	}
	seen := map[name]bool{}
	events := Collect(t, database.Events(t.Context(), store.Filter{}, store.EventCursor{}))
	for _, event := range events {
		if seen[name{event.Event, event.ID}] {
			t.Fatalf("%+v is there twice", event)
		}
		seen[name{event.Event, event.ID}] = true
	}
	if !slices.IsSortedFunc(events, func(a, b store.Event) int { return a.At.Compare(b.At) }) {
		t.Error("the events are not in the order of their time")
	}
	return events
}
