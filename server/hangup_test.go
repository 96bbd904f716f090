package server_test

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/server/listener"
	"example.com/providerd/store"
)

// TestStorageThatIsTooSlow locks the database. A create that waits longer than its timeout is refused and not stored.
func TestStorageThatIsTooSlow(t *testing.T) {
	t.Parallel()
	h := start(t)
	patient := h.url
	limits := listener.DefaultLimits()
	limits.ResponseTimeout = 1800 * time.Millisecond
	h.listen(t, limits)
	db, err := sql.Open("sqlite3", h.path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	body := encode(t, minimal(oauth2Path))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+oauth2Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.token)
	request.Header.Set("Content-Type", "application/json")
	// The first transaction waits for the lock, and the others wait for it. It waits for 5 s, within which both must
	// time out.
	impatient := http.Client{Timeout: 500 * time.Millisecond}
	if response, err := impatient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Fatalf("status is %d", response.StatusCode)
	}
	got := h.post(t, oauth2Path, body)
	got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	h.url = patient
	if record := h.post(t, oauth2Path, body).record(t); record["pk"] == nil {
		t.Errorf("the record is %v", record)
	}
	if stored := h.count(t); stored != 2 {
		t.Errorf("%d records are stored, want the first and the last", stored)
	}
}

// TestQueueIsBounded locks the database, so that creates wait. Those beyond the queue are refused without waiting, and the
// others are stored once the lock is released.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	h := start(t)
	db, err := sql.Open("sqlite3", h.path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const waiting, more = 512, 100
	answers := make(chan answer, 1+waiting+more)
	body := encode(t, minimal(oauth2Path))
	for range cap(answers) {
		go func() { answers <- h.post(t, oauth2Path, body) }()
	}
	for range more {
		(<-answers).problem(t, http.StatusServiceUnavailable, "overloaded")
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for range 1 + waiting {
		// On a busy machine, the first may have waited too long for the lock.
		if got := <-answers; got.status == http.StatusCreated {
			stored++
		} else {
			got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
		}
	}
	if count := h.count(t); stored == 0 || count != stored {
		t.Errorf("%d records are stored, want %d", count, stored)
	}
}

// count returns how many records are stored.
func (h *harness) count(t *testing.T) int {
	t.Helper()
	count := 0
	for _, err := range h.database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	return count
}
