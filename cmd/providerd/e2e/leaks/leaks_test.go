//go:build slow

// Package leaks_test searches everything that the program prints, sends, logs, traces and stores for secrets, and
// proves with injected leaks that it finds them.
package leaks_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain also runs the test binary as providerd, with leaks if a variable names them.
func TestMain(m *testing.M) { providerdtest.MainAround(m, runLeaking) }

// TestNothingLeaks is the gate for every change: no secret, token or key may be anywhere except in its field.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	s := newSearch(t)
	s.overSQLite()
	s.report()
}

// TestNothingLeaksOverPostgreSQL also scans the database server's files and log, and the list of processes.
func TestNothingLeaksOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	s := newSearch(t)
	s.keyset = filepath.Join(s.dir, "keyset.json")
	s.databaseURL = cluster.CreateDatabase(t)
	s.environment = []string{
		"PROVIDERD_DATABASE=" + s.databaseURL, "PROVIDERD_FROM=" + s.databaseURL, "PROVIDERD_KEYSET=" + s.keyset,
	}
	s.canary("password of the database", cluster.Password)
	s.run("key", "create")
	s.session("json")
	s.scanFiles(cluster.Path("data"))
	s.scan("the log of the database", []byte(cluster.Log()))
	s.report()
}

// search uses all of a program, with canaries as secrets, and searches what leaves the program or reaches the disk.
type search struct {
	// traces are the plain and encoded forms of canaries by name.
	traces map[string][][]byte
	// places counts what was scanned, and leaks are the canaries found, with their places.
	places int
	leaks  []string
	// missed are the places that the search did not reach.
	missed []string

	t      *testing.T
	dir    string
	client *http.Client
	server *providerdtest.Server
	// collector receives the spans of a session.
	collector *providerdtest.Collector
	// initial is the initial token, and narrow a token for one operation.
	initial, narrow string
	// keyset is the path of the keyset file, databaseURL is that of a PostgreSQL database, and environment has more
	// variables for the program.
	keyset, databaseURL string
	environment         []string
	// stderr is the standard error of the last command.
	stderr string
}

func newSearch(t *testing.T) *search {
	t.Helper()
	return &search{traces: map[string][][]byte{}, t: t, dir: t.TempDir(), client: contracttest.Client(t)}
}

func (s *search) report() {
	for _, finding := range append(s.leaks, s.missed...) {
		s.t.Error(finding)
	}
	s.t.Logf("scanned %d places for %d secrets, %d hits", s.places, len(s.traces), len(s.leaks))
}

// overSQLite searches everything over the default database, a backup and a restored one, which are the owner's only.
func (s *search) overSQLite() {
	s.keyset = filepath.Join(s.dir, "data", "keyset.json")
	s.session("text")
	for _, line := range []string{
		"backup backup.db", "backup backup.db", "restore backup.db", "restore backup.db --replace",
		"restore backup.db --database sqlite:restored/providerd.db",
	} {
		s.run(strings.Fields(line)...)
	}
	for _, path := range []string{"backup.db", "data/providerd.db", "restored/providerd.db"} {
		info, err := os.Stat(filepath.Join(s.dir, path))
		if err != nil {
			s.missed = append(s.missed, err.Error()+": "+s.stderr)
		} else if info.Mode() != 0o600 {
			s.leaks = append(s.leaks, fmt.Sprintf("the file %s has the mode %o", path, info.Mode()))
		}
	}
	s.scanFiles(s.dir)
}

// session runs the server from its start until it is killed with a dump of its goroutines.
func (s *search) session(logFormat string) {
	s.collector = providerdtest.StartCollector(s.t)
	tracing := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL, "OTEL_BSP_SCHEDULE_DELAY=10",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=" + s.fresh("key of the collector"),
	}
	s.server = providerdtest.MustStart(s.t, providerdtest.ServeCommand(s.t.Context(), s.dir,
		slices.Concat(tracing, s.environment, []string{
			"--log-level", "debug", "--log-format", logFormat, "--ops-listen", "127.0.0.1:0", "--failed-attempts", "3",
		})...))
	for _, step := range []func(){
		s.learn, s.creates, s.refusals, s.wrongTokens, s.scanWritten, s.pages, s.commands, s.applies,
		s.replaceMasterKey, s.spans,
	} {
		step()
	}
	_ = s.server.Child.Stop(syscall.SIGQUIT)
	s.scanWritten()
}

// scanWritten scans what the server has written: its log, the dump of a crash, and files.
func (s *search) scanWritten() {
	s.scan("standard error", []byte(s.server.Stderr.String()))
	s.scanFiles(s.dir)
}

// learn adds generated tokens and keys as canaries, and scans what every user of the machine can see of the server.
func (s *search) learn() {
	if _, err := os.Stat(filepath.Join(s.dir, "data", "initial-token")); err == nil {
		s.initial = providerdtest.Token(s.t, s.dir)
		s.canary("initial token", s.initial)
	} else {
		s.initial = s.newToken("initial", "providers_oauth2_create", "providers_workspace_directory_create")
	}
	s.narrow = s.newToken("narrow", "providers_oauth2_create")
	s.learnKeys()
	for _, name := range []string{"cmdline", "comm", "status"} {
		s.scan("the "+name+" of the process", must(os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.server.Command.Process.Pid, name))))
	}
}

func (s *search) fresh(name string) string {
	text := "canary" + rand.Text()
	s.canary(name, text)
	return text
}

func (s *search) run(arguments ...string) string { return s.runWithInput("", arguments...) }

func (s *search) runWithInput(input string, arguments ...string) string {
	command := providerdtest.Command(s.t.Context(), s.dir, slices.Concat([]string{
		"PROVIDERD_TOKEN=" + s.initial, "PROVIDERD_KEYSET=" + s.keyset, "PROVIDERD_FROM=sqlite:data/providerd.db",
	}, s.environment, arguments)...)
	command.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, _ := command.Output()
	if arguments[0] == "key" && s.server != nil {
		s.learnKeys()
	}
	what := "the output of " + strings.Join(arguments[:min(2, len(arguments))], " ")
	allowed := "no such"
	if arguments[0] == "token" && arguments[1] == "create" {
		allowed = "narrow token"
	}
	s.scan(what, output, allowed)
	s.stderr = stderr.String()
	s.scan("the standard error with "+what, []byte(s.stderr))
	return string(output)
}

// expect notes that the search has missed something unless a text says what it should.
func (s *search) expect(what, text, want string) {
	if !strings.Contains(text, want) {
		s.missed = append(s.missed, what+" does not say "+want+" but "+text)
	}
}

// anyStatus is a status that is not checked.
const anyStatus = 0

func (s *search) post(status int, path, token, body string, header ...string) {
	s.send(status, http.MethodPost, path, token, body, header...)
}

// send sends a request and scans the response: its header, and its body without the fields that may hold secrets. The
// search has missed something unless the response has a status.
func (s *search) send(status int, method, path, token, body string, header ...string) {
	request := must(http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body)))
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(request)
	processtest.Must(s.t, err)
	text, err := io.ReadAll(response.Body)
	processtest.Must(s.t, errors.Join(err, response.Body.Close()))
	if response.StatusCode == http.StatusCreated {
		var record map[string]any
		processtest.Must(s.t, json.Unmarshal(text, &record))
		delete(record, "client_secret")
		delete(record, "credentials")
		text = must(json.Marshal(record))
	}
	what := response.Status + " of " + method + " " + strings.SplitN(path, "?", 2)[0]
	if status != anyStatus && status != response.StatusCode {
		s.missed = append(s.missed, fmt.Sprintf("%s, want %d", what, status))
	}
	s.scan("the header of "+what, []byte(fmt.Sprint(response.Header)))
	s.scan("the body of "+what, text)
}

// canary adds a text that must not occur anywhere.
func (s *search) canary(name, text string) {
	quoted, _ := json.Marshal(text)
	traces := []string{
		text, strings.Trim(string(quoted), `"`), url.QueryEscape(text), hex.EncodeToString([]byte(text)),
		strings.ToUpper(hex.EncodeToString([]byte(text))), strings.Trim(fmt.Sprintf("%d", []byte(text)), "[]"),
	}
	// The base64 encoding depends on the offset, and its first and last characters on the neighboring bytes.
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, offset), text...))
		inner := strings.TrimRight(encoded, "=")[(offset*8+5)/6 : (offset+len(text))*8/6]
		traces = append(traces, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	for _, trace := range traces {
		if !slices.ContainsFunc(s.traces[name], func(known []byte) bool { return string(known) == trace }) {
			s.traces[name] = append(s.traces[name], []byte(trace))
		}
	}
}

// scan searches a place for canaries, except those whose names have a prefix in allowed.
func (s *search) scan(place string, content []byte, allowed ...string) {
	s.places++
	for name, traces := range s.traces {
		isAllowed := slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !isAllowed && slices.ContainsFunc(traces, func(trace []byte) bool { return bytes.Contains(content, trace) }) {
			s.leaks = append(s.leaks, fmt.Sprintf("%s is in %s", name, place))
		}
	}
}

// scanFiles scans files and their names. The token file may hold its token, and the keyset file master keys.
func (s *search) scanFiles(dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		allowed := map[string][]string{"initial-token": {"initial token"}, "keyset.json": {"master key "}}
		s.scan("the file "+entry.Name(), append(content, path...), allowed[entry.Name()]...)
		return nil
	})
	processtest.Must(s.t, err)
}
