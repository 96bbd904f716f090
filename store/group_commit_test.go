package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// slowDatabase commits in a second.
type slowDatabase struct{ database.Database }

func (d slowDatabase) Insert(ctx context.Context, rows database.Insertion) (map[uuid.UUID]int64, error) {
	<-time.After(time.Second)
	return d.Database.Insert(ctx, rows)
}

// inBubble runs a test over a slow database, with simulated time.
func inBubble(t *testing.T, test func(t *testing.T, opened *store.Store)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	keyset := filepath.Join(filepath.Dir(path), "keyset.json")
	if _, err := seal.ReadOrCreateMasterKeys(keyset); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		opened, err := store.Create(t.Context(), slowDatabase{db}, keyset)
		if err != nil {
			t.Fatal(err)
		}
		test(t, opened)
	})
}

// One caller with many creates does not keep another one out of the queue.
func TestFullQueueHasRoomForOthers(t *testing.T) {
	t.Parallel()
	const length, room = 512, 8
	inBubble(t, func(t *testing.T, opened *store.Store) {
		create := func(caller, name string) <-chan error {
			outcome := make(chan error, 1)
			go func() {
				request := store.CreateRequest{Name: name, CreatedBy: caller}
				_, _, err := opened.CreateOAuth2Provider(t.Context(), request, storetest.FullOAuth2(name))
				outcome <- err
			}()
			synctest.Wait()
			return outcome
		}
		var stored []<-chan error
		for i := range 1 + length {
			stored = append(stored, create("crowd", fmt.Sprint(i)))
		}
		for i := range room {
			stored = append(stored, create("other", fmt.Sprint("other ", i)))
		}
		for _, caller := range []string{"crowd", "other"} {
			if err := <-create(caller, caller); !errors.Is(err, store.ErrOverloaded) {
				t.Errorf("%s: error is %v, want ErrOverloaded", caller, err)
			}
		}
		for _, outcome := range stored {
			if err := <-outcome; err != nil {
				t.Error(err)
			}
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
}
