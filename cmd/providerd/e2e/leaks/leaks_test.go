//go:build slow

package leaks_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestNothingLeaks is the gate for every change: no secret, token or key may be anywhere except in its field.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	report(t, searchLeaks(t, os.Args[0]))
}

// TestNothingLeaksOverPostgreSQL also scans the files and the log of the database server, and the process list. It
// uses the other log format, since formats do not depend on the database.
func TestNothingLeaksOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	s := newSearch(t, os.Args[0])
	s.keyset = filepath.Join(s.dir, "keyset.json")
	url := cluster.CreateDatabase(t)
	s.environment = []string{"PROVIDERD_DATABASE=" + url, "PROVIDERD_FROM=" + url, "PROVIDERD_KEYSET=" + s.keyset}
	s.canary("password of the database", cluster.Password)
	s.run("key", "create")
	s.session("json")
	s.scanFiles(t, cluster.Dir())
	s.scan("the log of the database", []byte(cluster.Log()))
	report(t, s.scanner)
}

func report(t *testing.T, found *scanner) {
	t.Helper()
	for _, finding := range append(found.leaks, found.missed...) {
		t.Error(finding)
	}
	t.Logf("scanned %d places for %d secrets, %d hits", found.places, len(found.traces), len(found.leaks))
}

// search exercises everything that a program does, with canaries as secrets.
type search struct {
	*scanner
	t       *testing.T
	program string
	dir     string
	client  *http.Client
	server  *providerdtest.Server
	// collector receives the spans of a session.
	collector *providerdtest.Collector
	// initial is the initial token, and narrow a token for one operation.
	initial, narrow string
	bodies          map[string]string
	// keyset is the path of the keyset file, and environment has the variables for another database than the default.
	keyset      string
	environment []string
	// stderr is the standard error of the last command.
	stderr string
}

// searchLeaks returns what it found in the output and files of a program.
func searchLeaks(t *testing.T, program string) *scanner {
	t.Helper()
	s := newSearch(t, program)
	s.keyset = filepath.Join(s.dir, "data", "keyset.json")
	s.session("text")
	s.untilLeak(s.backUp, func() { s.scanFiles(t, s.dir) })
	return s.scanner
}

func newSearch(t *testing.T, program string) *search {
	t.Helper()
	return &search{
		scanner: newScanner(), t: t, program: program, dir: t.TempDir(), client: contracttest.Client(t),
		bodies: map[string]string{},
	}
}

// untilLeak takes steps until one finds a leak, which the others would only find again.
func (s *search) untilLeak(steps ...func()) {
	for _, step := range steps {
		if len(s.leaks) == 0 {
			step()
		}
	}
}

// session runs the server from its start until it is killed with a dump of its goroutines.
func (s *search) session(logFormat string) {
	s.collector = providerdtest.StartCollector(s.t)
	command := providerdtest.ServeCommand(s.t.Context(), s.dir, slices.Concat(s.tracing(), s.environment, []string{
		"--log-level", "debug", "--log-format", logFormat, "--ops-listen", "127.0.0.1:0", "--failed-attempts", "3",
	})...)
	command.Path = s.program
	s.server = providerdtest.MustStart(s.t, command)
	s.untilLeak(s.scanProcess, s.learn, s.creates, s.refusals, s.wrongTokens, s.scanWritten, s.pages, s.commands, s.applies,
		s.withoutKeyset, s.spans)
	_ = s.server.Child.Stop(syscall.SIGQUIT)
	s.scanWritten()
}

// scanProcess scans what every user of the machine can see of the server.
func (s *search) scanProcess() {
	for _, name := range []string{"cmdline", "comm", "status"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.server.Command.Process.Pid, name))
		if err != nil {
			s.t.Fatal(err)
		}
		s.scan("the "+name+" of the process", content)
	}
}

// scanWritten scans what the server has written: its log, the dump of a crash, and files.
func (s *search) scanWritten() {
	s.scan("standard error", []byte(s.server.Stderr.String()))
	s.scanFiles(s.t, s.dir)
}

// learn adds the tokens and keys that the program generated as canaries.
func (s *search) learn() {
	if s.environment == nil {
		s.initial = providerdtest.Token(s.t, s.dir)
		s.canary("initial token", s.initial)
	} else {
		s.initial = s.newToken("initial token", "providers_oauth2_create", "providers_workspace_directory_create")
	}
	s.narrow = s.newToken("narrow token", "providers_oauth2_create")
	s.learnKeys()
}

// newToken creates a token that allows operations. Its name is the first word of the canary's.
func (s *search) newToken(canary string, operations ...string) string {
	name, _, _ := strings.Cut(canary, " ")
	arguments := []string{"token", "create", "--name", name}
	for _, operation := range operations {
		arguments = append(arguments, "--allow", operation)
	}
	text := strings.TrimSpace(s.run(arguments...))
	s.canary(canary, text)
	return text
}

func (s *search) learnKeys() {
	content, err := os.ReadFile(s.keyset)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`"value": *"([^"]+)"`).FindAllStringSubmatch(string(content), -1) {
		s.canary("key "+match[1][len(match[1])-4:], match[1])
	}
}

// fresh returns a new canary.
func (s *search) fresh(name string) string {
	text := "canary" + rand.Text()
	s.canary(name, text)
	return text
}

// run runs a command and returns its output.
func (s *search) run(arguments ...string) string { return s.runWithInput("", arguments...) }

// runWithInput is run with standard input.
func (s *search) runWithInput(input string, arguments ...string) string {
	command := providerdtest.Command(s.t.Context(), s.dir, slices.Concat([]string{
		"PROVIDERD_TOKEN=" + s.initial, "PROVIDERD_KEYSET=" + s.keyset, "PROVIDERD_FROM=sqlite:data/providerd.db",
	}, s.environment, arguments)...)
	command.Path, command.Stdin = s.program, strings.NewReader(input)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, _ := command.Output()
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

// send sends a request and scans the response: its header, and its body without the fields that may hold secrets.
func (s *search) send(method, path, token, body string, header ...string) *http.Response {
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode == http.StatusCreated {
		text = s.withoutSecrets(text)
	}
	var headers strings.Builder
	if err := response.Header.Write(&headers); err != nil {
		s.t.Fatal(err)
	}
	what := response.Status + " of " + method + " " + strings.SplitN(path, "?", 2)[0]
	s.scan("the header of "+what, []byte(headers.String()))
	s.scan("the body of "+what, text)
	return response
}

func (s *search) withoutSecrets(text []byte) []byte {
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		s.t.Fatal(err)
	}
	delete(record, "client_secret")
	delete(record, "credentials")
	text, err := json.Marshal(record)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// want records a response that does not have the expected status.
func (s *search) want(response *http.Response, status int) {
	if response.StatusCode != status {
		s.missed = append(s.missed, fmt.Sprintf("%s %s: status is %d, want %d",
			response.Request.Method, response.Request.URL.Path, response.StatusCode, status))
	}
}

// backUp creates a backup and restores it. Only the owner may be able to read either.
func (s *search) backUp() {
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
			continue
		}
		if info.Mode() != 0o600 {
			s.leaks = append(s.leaks, fmt.Sprintf("the file %s has the mode %o", path, info.Mode()))
		}
	}
}
