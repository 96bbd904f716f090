package server_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/server/listener"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// count returns how many records are stored.
func (h *harness) count(t *testing.T) int {
	t.Helper()
	return len(storetest.Collect(t, h.database.Providers.List(t.Context(), store.Filter{}, 0)))
}

// lock locks the database, so that creates wait until unlock is called, at most for 5 s.
func (h *harness) lock(t *testing.T) (unlock func()) {
	t.Helper()
	db := processtest.Try(sql.Open("sqlite3", h.path+"?_txlock=immediate")).Must(t)
	t.Cleanup(func() { _ = db.Close() })
	lock := processtest.Try(db.BeginTx(t.Context(), nil)).Must(t)
	return func() { processtest.Must(t, lock.Rollback()) }
}

// TestSlowDatabase locks the database. A create that waits longer than its timeout is refused and not stored.
func TestSlowDatabase(t *testing.T) {
	h := startParallel(t)
	patient := h.url
	limits := listener.DefaultLimits()
	processtest.Equal(t, limits.ResponseTimeout, time.Minute, "limit of a request")
	limits.ResponseTimeout = 1800 * time.Millisecond
	address := h.listen(t, limits)
	unlock := h.lock(t)
	body := encode(t, minimal(oauth2Path))
	// The first transaction waits for the lock, and the others wait for it. Its caller leaves.
	first := connect(t, address).send(t, h.head()+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	processtest.Must(t, first.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	_, err := first.answers.ReadByte()
	processtest.Require(t, errors.Is(err, os.ErrDeadlineExceeded), "there is an answer, %v", err)
	_ = first.Close()
	got := h.post(t, oauth2Path, body)
	got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	processtest.Expect(t, got.header.Get("Retry-After") != "", "Retry-After is missing")
	unlock()
	h.url = patient
	h.post(t, oauth2Path, body).record(t)
	processtest.Equal(t, h.count(t), 2, "stored records, the first and the last")
}

// TestQueueIsBounded locks the database, so that creates wait. Those beyond the queue are refused without waiting, and the
// others are stored once the lock is released. A metric has the length of the queue.
func TestQueueIsBounded(t *testing.T) {
	h := startParallel(t)
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
	length := seriesOf(t, registry)["providerd_queue_length"]
	processtest.Expect(t, length >= 1 && length <= waiting, "%v creates wait, want at most %d", length, waiting)
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
	count := h.count(t)
	processtest.Expect(t, stored != 0 && count == stored, "%d records are stored, want %d", count, stored)
	processtest.Equal(t, seriesOf(t, registry)["providerd_queue_length"], 0, "waiting creates, once they are stored")
}

func TestStorageUnavailable(t *testing.T) {
	h := startParallel(t)
	processtest.Must(t, os.Rename(h.path, h.path+".away"))
	h.post(t, oauth2Path, "{}").problem(t, http.StatusBadRequest, "validation-failed")
	// Right after the check that follows a commit, a create could still rely on that check.
	h.send(t, http.MethodGet, "/readyz", nil).problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)))
	got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
	processtest.Equal(t, got.header.Get("Retry-After"), "1", "Retry-After")
	processtest.Equal(t, h.send(t, http.MethodGet, "/healthz", nil).status, http.StatusOK, "status of /healthz")
}

// A statement that SQLite cannot parse is an internal error: a retry does not help.
func TestFaultOfTheServer(t *testing.T) {
	h := startParallel(t)
	storetest.Execute(t, h.path, "DROP TABLE providers")
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).problem(t, http.StatusInternalServerError, "internal")
}

// A damaged token row is an error of the storage that affects no other caller. The log names it.
func TestDamagedToken(t *testing.T) {
	h := startParallel(t)
	body := encode(t, minimal(oauth2Path))
	for id, statement := range []string{
		"operations = '{bad'", "operations = '7'", "operations = 'null'", "operations = ''",
	} {
		token := h.newToken(t, "x", time.Hour, oauth2Operation)
		storetest.Execute(t, h.path, fmt.Sprintf("UPDATE tokens SET %s WHERE id = %d", statement, id+2))
		got := h.post(t, oauth2Path, body, set("Authorization", "Bearer "+token))
		problem := got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
		processtest.Contains(t, problem.Detail, "access token is damaged")
		processtest.Equal(t, got.header.Get("Retry-After"), "86400", "Retry-After")
		damage := fmt.Sprintf("token %d: its row is damaged", id+2)
		processtest.Equal(t, strings.Count(h.log.String(), damage), 1, "lines with %q for %s", damage, statement)
	}
	h.post(t, oauth2Path, body).record(t)
}

// TestDamagedRecord corrupts secrets and lists of records. Their retries fail permanently; other creates do not.
func TestDamagedRecord(t *testing.T) {
	h := startParallel(t)
	for _, test := range []struct{ path, statement, cause string }{
		{oauth2Path, "UPDATE providers SET secret = x'00'", "secret: sealed secret is damaged"},
		{oauth2Path, "UPDATE providers SET property_mappings = '{bad'", "its row is damaged: property_mappings is not a list: "},
		{oauth2Path, "UPDATE providers SET authorization_flow = 'bad'", "its row is damaged"},
		{workspaceDirectoryPath, "UPDATE providers SET secret = x'0000'", "secret: sealed secret is damaged"},
		{
			workspaceDirectoryPath, "UPDATE providers SET property_mappings_group = '{bad' WHERE kind = 'workspace_directory'",
			"its row is damaged: property_mappings_group is not a list: ",
		},
	} {
		request := minimal(test.path)
		body, key := encode(t, request), set(keyHeader, strings.ReplaceAll(test.statement, " ", "_"))
		pk := h.post(t, test.path, body, key).record(t)["pk"]
		storetest.Execute(t, h.path, test.statement)
		request["name"] = "another"
		for _, retry := range []string{body, encode(t, request)} {
			for _, query := range []string{"", validateOnly} {
				got := h.post(t, test.path+query, retry, key)
				problem := got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
				processtest.Contains(t, problem.Detail, "The record that")
				processtest.Equal(t, got.header.Get("Retry-After"), "86400", "Retry-After")
			}
		}
		cause := fmt.Sprintf("provider %v: %s", pk, test.cause)
		processtest.Equal(t, strings.Count(h.log.String(), cause), 4, "lines with %q for %s", cause, test.statement)
		h.post(t, test.path, body).record(t)
	}
}
