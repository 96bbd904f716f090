package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

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
			processtest.Must(t, err)
			for _, entry := range page.Entries {
				read = append(read, entry.Event)
			}
		}
	}
	events := Collect(t, database.Events(t.Context(), store.EventFilter{}, 0))
	if !reflect.DeepEqual(read, events) {
		t.Error("what was read during the creates has other events, or another order")
	}
	if len(events) != count+1 {
		t.Errorf("%d events, want one for each of %d creates and for a key", len(events), count)
	}
	for i, event := range events[1:] {
		if event.ID <= events[i].ID {
			t.Errorf("%+v follows %+v", event, events[i])
		}
	}
}
