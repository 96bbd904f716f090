package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// largestBody is a valid body of 1 MiB of a workspace directory-sync provider, full of a character.
func largestBody(character string) string {
	return directoryWith(`{"a":"` + strings.Repeat(character, 1<<20-len(directoryWith(`{"a":""}`))) + `"}`)
}

// directoryHead is head for a workspace directory-sync provider.
func (h *harness) directoryHead() string {
	return strings.Replace(h.head(), oauth2Path, workspaceDirectoryPath, 1)
}

// awaitStatus sends a body until it is answered so, and does more each time that it is not.
func (h *harness) awaitStatus(t *testing.T, body string, status int, more func()) answer {
	t.Helper()
	for begun := time.Now(); ; {
		got := h.post(t, workspaceDirectoryPath, body)
		if got.status == status {
			return got
		}
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("after three minutes status is %d, not %d: %.1000s", got.status, status, got.body)
		}
		more()
	}
}

// demandSmallCreates demands that small bodies are taken, whatever large ones do.
func (h *harness) demandSmallCreates(t *testing.T) {
	t.Helper()
	for range 10 {
		h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).record(t)
	}
}

func TestSlowSendersHoldWhatHasArrived(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := largestBody("x")
	head := h.directoryHead() + fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n", len(body))
	address := strings.TrimPrefix(h.url, "http://")
	for range 60 {
		connect(t, address).send(t, head+body[:1])
	}
	h.post(t, workspaceDirectoryPath, body).record(t)

	var senders []*peer
	got := h.awaitStatus(t, body, http.StatusServiceUnavailable, func() {
		for range 10 {
			senders = append(senders, connect(t, address).send(t, head+body[:len(body)-1]))
		}
	})
	got.problem(t, http.StatusServiceUnavailable, "overloaded")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
	}
	h.demandSmallCreates(t)
	for _, sender := range senders {
		status := sender.send(t, body[len(body)-1:]).answer(t).StatusCode
		if status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Errorf("a sender who was slow is answered %d", status)
		}
	}
	// The answer to this takes nearly all that large bodies may, so that it shows what was not given back.
	h.awaitStatus(t, largestBody("<"), http.StatusCreated, func() {})
}

func TestAnswersThatNobodyReadsHoldWhatTheyTake(t *testing.T) {
	t.Parallel()
	h := start(t)
	// A small body, of which the list of violations is as long as can be: it counts among the large ones then.
	body := directoryWith(`{"` + strings.Repeat("<", 900) + `":[` + strings.Repeat(`"\u0000",`, 200) + "0]}")
	request := h.directoryHead() + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	large := largestBody("x")
	var idle []*peer
	got := h.awaitStatus(t, large, http.StatusServiceUnavailable, func() {
		for range 10 {
			reader := connect(t, strings.TrimPrefix(h.url, "http://"))
			idle = append(idle, reader)
			if err := reader.SetReadBuffer(1 << 10); err != nil {
				t.Fatal(err)
			}
			// What the kernel does not take for either side stays in the server.
			reader.send(t, strings.Repeat(request, 20))
		}
	})
	got.problem(t, http.StatusServiceUnavailable, "overloaded")
	h.demandSmallCreates(t)
	for _, reader := range idle {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	h.awaitStatus(t, large, http.StatusCreated, func() {})
}
