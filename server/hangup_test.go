package server_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/server/listener"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// lock locks the database, so that creates wait until unlock is called, at most for 5 s.
func (h *harness) lock(t *testing.T) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite3", h.path+"?_txlock=immediate")
	processtest.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	lock, err := db.BeginTx(t.Context(), nil)
	processtest.Must(t, err)
	return func() {
		processtest.Must(t, lock.Rollback())
	}
}

// TestSlowDatabase locks the database. A create that waits longer than its timeout is refused and not stored.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	h := start(t)
	patient := h.url
	limits := listener.DefaultLimits()
	if limits.ResponseTimeout != time.Minute {
		t.Errorf("requests may take %v", limits.ResponseTimeout)
	}
	limits.ResponseTimeout = 1800 * time.Millisecond
	address := h.listen(t, limits)
	unlock := h.lock(t)
	body := encode(t, minimal(oauth2Path))
	// The first transaction waits for the lock, and the others wait for it. Its caller leaves.
	first := connect(t, address).send(t, h.head()+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	processtest.Must(t, first.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	if _, err := first.answers.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("there is an answer, %v", err)
	}
	_ = first.Close()
	got := h.post(t, oauth2Path, body)
	got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	unlock()
	h.url = patient
	h.post(t, oauth2Path, body).record(t)
	if stored := h.count(t); stored != 2 {
		t.Errorf("%d records are stored, want the first and the last", stored)
	}
}

// TestQueueIsBounded locks the database, so that creates wait. Those beyond the queue are refused without waiting, and the
// others are stored once the lock is released. A metric has the length of the queue.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	h := start(t)
	_, registry := h.startCounted(t, 1)
	unlock := h.lock(t)
	const waiting, more = 512, 100
	answers := make(chan answer, 1+waiting+more)
	body := encode(t, minimal(oauth2Path))
	for range cap(answers) {
		go func() { answers <- h.post(t, oauth2Path, body) }()
	}
	for range more {
		(<-answers).problem(t, http.StatusServiceUnavailable, "overloaded")
	}
	if length := seriesOf(t, registry)["providerd_queue_length"]; length < 1 || length > waiting {
		t.Errorf("%v creates wait, want at most %d", length, waiting)
	}
	unlock()
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
	if left := seriesOf(t, registry)["providerd_queue_length"]; left != 0 {
		t.Errorf("once the creates are stored, %v wait", left)
	}
}

// count returns how many records are stored.
func (h *harness) count(t *testing.T) int {
	t.Helper()
	count := 0
	for _, err := range h.database.Providers(t.Context(), store.Filter{}, 0) {
		processtest.Must(t, err)
		count++
	}
	return count
}
