package storetest

import (
	"errors"
	"fmt"
	"testing"

	"example.com/providerd/store"
)

// keyed returns a creation with an idempotency key.
func keyed(key, name string) store.CreateRequest {
	return store.CreateRequest{Name: name, CreatedBy: "caller", RequestID: "request", IdempotencyKey: &key}
}

// testFailingRows runs creates that fail and creates that succeed in the same batches.
func testFailingRows(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	const count = 300
	concurrently(count, func(i int) {
		clientID := fmt.Sprint(i)
		if i%3 == 0 {
			clientID = "taken"
		}
		_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), FullOAuth2(clientID))
		if taken := errors.Is(err, store.ErrClientIDTaken); taken != (i%3 == 0) || !taken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	})
	if records := stored(t, database); len(records) != 1+count*2/3 {
		t.Errorf("%d records are stored, want %d", len(records), 1+count*2/3)
	}
}
