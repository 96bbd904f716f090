package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
)

// defaultHostileBodies is for an ordinary test run; make contract sends more.
const defaultHostileBodies = 2_000

// maxGrowthKiB is how much more memory may be in use after all bodies than after a tenth of them.
const maxGrowthKiB = 5 * 1024

// TestHostileBodies sends random and hostile bodies to the program and watches its memory. No body may cost a 5xx, an
// answer that the contract does not have, or memory that is not given back.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	count := defaultHostileBodies
	if text := os.Getenv("PROVIDERD_HOSTILE_BODIES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	sender := newHostileSender(t, server, folder)
	statuses := map[int]int{}
	for i := range count / 10 {
		statuses[sender.send(t, i)]++
	}
	before := residentKiB(t, server)
	for i := count / 10; i < count; i++ {
		statuses[sender.send(t, i)]++
	}
	after := residentKiB(t, server)
	if err := server.stop(); err != nil {
		t.Errorf("%v: %s", err, server.stderr)
	}
	t.Logf("%d bodies: statuses %v; resident %d KiB after a tenth, %d KiB after all", count, statuses, before, after)
	// Few bodies do not tell a leak from a heap that is still growing to its size.
	if count > defaultHostileBodies && after-before > maxGrowthKiB {
		t.Errorf("memory has grown by %d KiB, want at most %d", after-before, maxGrowthKiB)
	}
	for status := range statuses {
		if status >= http.StatusInternalServerError {
			t.Errorf("%d answers have status %d", statuses[status], status)
		}
	}
}

type hostileSender struct {
	client  *http.Client
	server  *process
	folder  string
	random  *rand.Rand
	valid   map[string]string
	hostile []string
}

func newHostileSender(t *testing.T, server *process, folder string) *hostileSender {
	t.Helper()
	return &hostileSender{
		client: contracttest.Client(t), server: server, folder: folder,
		// A fixed seed, so that a finding can be repeated.
		random: rand.New(rand.NewPCG(1, 2)),
		valid: map[string]string{
			oauth2Path: `{"name":"n","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","redirect_uris":` +
				`"https://a\nhttps://b","access_code_validity":"hours=1;minutes=2","property_mappings":[]}`,
			"/api/v3/providers/workspace_directory/": `{"name":"n","delegated_subject":"admin@example.com","credentials":` +
				`{"a":[1.10,{"b":null}]},"default_group_email_domain":"example.com"}`,
		},
		hostile: []string{
			"", " ", "null", "[]", "{", "\xef\xbb\xbf{}", `{"name":"\ud800"}`, `{"a":1,"a":2}`, "{}{}", `{"name":1e999999}`,
			strings.Repeat(`{"a":`, 10_000), strings.Repeat("[", 100_000), `{"x":"` + strings.Repeat("x", 100_000) + `"}`,
			`{"property_mappings":[` + strings.Repeat("1,", 5_000) + `1]}`,
			`{"redirect_uris":"` + strings.Repeat(`https://a\n`, 5_000) + `\n"}`, `{"credentials":{"\u0000":"\u0000"}}`,
			`{"name":"` + strings.Repeat(" ", 50_000) + `"}`, `{"credentials":` + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60) + "}",
		},
	}
}

// send sends the body of a number and returns the status.
func (s *hostileSender) send(t *testing.T, number int) int {
	t.Helper()
	path := oauth2Path
	if number%2 == 1 {
		path = "/api/v3/providers/workspace_directory/"
	}
	status, text, err := s.server.post(s.client, s.folder, path, s.body(path))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return status
}

func (s *hostileSender) body(path string) string {
	switch s.random.IntN(10) {
	case 0:
		return s.hostile[s.random.IntN(len(s.hostile))]
	case 1:
		random := make([]byte, s.random.IntN(300))
		for i := range random {
			random[i] = byte(s.random.Uint32())
		}
		return string(random)
	case 2:
		return s.valid[path]
	default:
		return s.spoil([]byte(s.valid[path]))
	}
}

// spoil changes some bytes of a valid body: to others, to parts of JSON, or to a piece of itself.
func (s *hostileSender) spoil(body []byte) string {
	parts := []string{`"`, "{", "}", "[", "]", ",", ":", "null", "true", "1e9", `\u0000`, `\ud83d`, "\xff", "\x00", "é", "🔑", " "}
	for range 1 + s.random.IntN(4) {
		at := s.random.IntN(len(body))
		end := min(len(body), at+s.random.IntN(8))
		var with []byte
		switch s.random.IntN(3) {
		case 0:
			with = []byte(parts[s.random.IntN(len(parts))])
		case 1:
			with = []byte{byte(s.random.Uint32())}
		case 2:
			from := s.random.IntN(len(body))
			with = body[from:min(len(body), from+20)]
		}
		body = bytes.Join([][]byte{body[:at], with, body[end:]}, nil)
	}
	return string(body)
}

// residentKiB is the memory of the process that is in RAM.
func residentKiB(t *testing.T, server *process) int {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", server.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
