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
			revoked = append(revoked, event.Subject)
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

// testEventsDuringCreates reads the log during creates, each time after the last event, and expects all events.
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
	var read []store.Event
	for isDone := false; !isDone; {
		isDone = ctx.Err() != nil
		var last store.Cursor
		if len(read) > 0 {
			last.ID, last.At = read[len(read)-1].ID, read[len(read)-1].At
		}
		for page, err := range database.Log(t.Context(), store.EventFilter{}, last, func(string) {}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range page.Entries {
				read = append(read, entry.Event)
			}
		}
	}
	if !sameEvents(read, readEvents(t, database)) {
		t.Error("what was read during the creates has other events, or another order")
	}
	if events := readEvents(t, database); len(events) != count+1 {
		t.Errorf("%d events, want those of %d creates and a key", len(events), count)
	}
}

// readEvents reads all events. None may occur twice or out of order.
func readEvents(t *testing.T, database *store.Store) []store.Event {
	t.Helper()
	events := Collect(t, database.Events(t.Context(), store.EventFilter{}, 0))
	for i, event := range events[1:] {
		if event.ID <= events[i].ID {
			t.Fatalf("%+v follows %+v", event, events[i])
		}
	}
	return events
}
