package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// manyEvents is more than two pages of any sensible size.
const manyEvents = 510

func sameEvents(a, b []store.Event) bool {
	return slices.EqualFunc(a, b, func(a, b store.Event) bool { return reflect.DeepEqual(a, b) })
}

func testEventsInOrder(t *testing.T, database *store.Store) {
	concurrently(manyEvents, func(i int) {
		// The events must not be ordered by key.
		_, _, err := database.CreateOAuth2Provider(t.Context(), keyed(fmt.Sprint(i*7919%manyEvents), "x"), FullOAuth2(fmt.Sprint(i)))
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
		if want := tokens[i*7919%len(tokens)].ID; id != want {
			t.Fatalf("revocation %d is of token %d, want %d", i, id, want)
		}
	}
}

// testEventsDuringCreates reads the events repeatedly, and expects all previous ones in the same order.
func testEventsDuringCreates(t *testing.T, database *store.Store) {
	const count = 700
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		concurrently(count, func(i int) {
			_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), FullOAuth2(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
		})
	}()
	var before []store.Event
	for ctx.Err() == nil {
		events := readEvents(t, database)
		// Events that other replicas commit may be inserted between.
		expected := before
		for _, event := range events {
			if len(expected) > 0 && reflect.DeepEqual(event, expected[0]) {
				expected = expected[1:]
			}
		}
		if len(expected) > 0 {
			t.Fatal("previous events are missing or in another order")
		}
		before = events
	}
	if events := readEvents(t, database); len(events) != count+1 {
		t.Errorf("%d events, want those of %d creates and a key", len(events), count)
	}
}

// readEvents reads all events. None may occur twice or out of order.
func readEvents(t *testing.T, database *store.Store) []store.Event {
	t.Helper()
	seen := map[store.EventCursor]bool{}
	events := Collect(t, database.Events(t.Context(), store.Filter{}, store.EventCursor{}))
	for _, event := range events {
		if seen[event.Cursor] {
			t.Fatalf("%+v occurs twice", event)
		}
		seen[event.Cursor] = true
	}
	if !slices.IsSortedFunc(events, func(a, b store.Event) int { return a.At.Compare(b.At.Time) }) {
		t.Error("events are not ordered by time")
	}
	return events
}
