package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
	events := eventsSince(t.Context(), t, database, time.Time{})
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
	checkSince(t, database, events)
}

// checkSince reads the events since the time of some of them, which are those from the first of that time on.
func checkSince(t *testing.T, database *store.Store, events []store.Event) {
	t.Helper()
	for at := 0; at < len(events); at += len(events) / 7 {
		since := events[at].At
		first, _ := slices.BinarySearchFunc(events, since, func(event store.Event, at time.Time) int { return event.At.Compare(at) })
		elsewhere := since.In(time.FixedZone("elsewhere", 5*60*60))
		if got := eventsSince(t.Context(), t, database, elsewhere); !slices.Equal(got, events[first:]) {
			t.Errorf("%d events since that of number %d, want %d", len(got), at, len(events)-first)
		}
	}
	if late := eventsSince(t.Context(), t, database, events[len(events)-1].At.Add(time.Microsecond)); len(late) != 0 {
		t.Errorf("after the last event there are %+v", late)
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
		events := eventsSince(t.Context(), t, database, time.Time{})
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
	if events := eventsSince(t.Context(), t, database, time.Time{}); len(events) != count+1 {
		t.Errorf("%d events, want those of %d creates and a key", len(events), count)
	}
}

// eventsSince reads events, of which none may be there twice, too early or out of order.
func eventsSince(ctx context.Context, t *testing.T, database *store.Store, since time.Time) []store.Event {
	t.Helper()
	var events []store.Event
	type name struct {
		event store.EventKind
		id    int64
	}
	seen := map[name]bool{}
	for event, err := range database.Events(ctx, store.Filter{Since: since}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[name{event.Event, event.ID}] {
			t.Fatalf("%+v is there twice", event)
		}
		seen[name{event.Event, event.ID}] = true
		events = append(events, event)
	}
	if len(events) > 0 && events[0].At.Before(since) {
		t.Errorf("%+v is from before %s", events[0], since)
	}
	if !slices.IsSortedFunc(events, func(a, b store.Event) int { return a.At.Compare(b.At) }) {
		t.Error("the events are not in the order of their time")
	}
	return events
}
