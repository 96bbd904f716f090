package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/store"
)

// TestTiming times a create that is alone, two that share the next transaction, and one whose caller gives up before
// that transaction begins.
func TestTiming(t *testing.T) {
	t.Parallel()
	slow := &slowDatabase{commit: 4 * time.Second}
	var timings [4]store.Timing
	inBubble(t, slow, func(t *testing.T, opened *store.Store) {
		var group sync.WaitGroup
		create := func(ctx context.Context, number int, want error) {
			group.Go(func() {
				_, _, err := opened.CreateOAuth2Provider(ctx, store.CreateRequest{Timing: &timings[number]}, store.OAuth2Settings{})
				if !errors.Is(err, want) {
					t.Errorf("create %d: error is %v, want %v", number, err, want)
				}
			})
			synctest.Wait()
		}
		create(t.Context(), 0, nil)
		<-time.After(time.Second)
		create(t.Context(), 1, nil)
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		create(hasty, 3, context.DeadlineExceeded)
		<-time.After(time.Second)
		create(t.Context(), 2, nil)
		group.Wait()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	at := func(seconds int) time.Time { return slow.begun.Add(time.Duration(seconds) * time.Second) }
	for number, want := range []store.Timing{
		{Queued: at(0), Begun: at(0), Ended: at(4), BatchSize: 1},
		{Queued: at(1), Begun: at(4), Ended: at(8), BatchSize: 2},
		{Queued: at(2), Begun: at(4), Ended: at(8), BatchSize: 2},
		{Queued: at(1)},
	} {
		got := timings[number]
		if !got.Queued.Equal(want.Queued) || !got.Begun.Equal(want.Begun) || !got.Ended.Equal(want.Ended) ||
			got.BatchSize != want.BatchSize || got.HasFailed {
			t.Errorf("create %d: timing is %+v, want %+v", number, got, want)
		}
	}
}
