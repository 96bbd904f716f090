//go:build slow

package leaks_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestNothingLeaks is the gate that every change must pass: no secret, token or key is anywhere but in its field.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	report(t, searchLeaks(t, os.Args[0]))
}

// TestNothingLeaksOverPostgreSQL looks at the files and the log of the server as well, and into the list of processes.
func TestNothingLeaksOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	s := newSearch(t, os.Args[0])
	s.keyset = filepath.Join(s.folder, "keyset.json")
	url := cluster.CreateDatabase(t)
	s.environment = []string{"PROVIDERD_DATABASE=" + url, "PROVIDERD_FROM=" + url, "PROVIDERD_KEYSET=" + s.keyset}
	s.canary("password of the database", cluster.Password)
	s.run("key", "create")
	s.sessions()
	s.scanFiles(t, cluster.Folder())
	s.scan("the log of the database", []byte(cluster.Log()))
	report(t, s.scanner)
}

func report(t *testing.T, found *scanner) {
	t.Helper()
	for _, finding := range append(found.leaks, found.astray...) {
		t.Error(finding)
	}
	t.Logf("%d places were scanned for %d secrets, %d hits", found.places, len(found.traces), len(found.leaks))
}

// search leads a program through all that it does, with canaries as its secrets.
type search struct {
	*scanner
	t       *testing.T
	program string
	folder  string
	client  *http.Client
	server  *providerdtest.Server
	// collector gets the spans of a session.
	collector *providerdtest.Collector
	// initial is the token of the first start, narrow one that allows one operation.
	initial, narrow string
	bodies          map[string]string
	// keyset is the path of the keyset file, and environment has what leads to a database other than the default.
	keyset      string
	environment []string
	// talk is what the last command said on standard error.
	talk string
}

// searchLeaks returns what it found in everything that a program of this build let out.
func searchLeaks(t *testing.T, program string) *scanner {
	t.Helper()
	s := newSearch(t, program)
	s.keyset = filepath.Join(s.folder, "data", "keyset.json")
	s.sessions()
	s.backUp()
	s.scanFiles(t, s.folder)
	return s.scanner
}

func newSearch(t *testing.T, program string) *search {
	t.Helper()
	return &search{
		scanner: newScanner(), t: t, program: program, folder: t.TempDir(), client: contracttest.Client(t),
		bodies: map[string]string{},
	}
}

// sessions leads the program through all it does, with each format of the log. Where the first time has found a leak,
// the second would only find it again.
func (s *search) sessions() {
	for _, format := range []string{"text", "json"} {
		if len(s.leaks) == 0 {
			s.session(format)
		}
	}
}

// session runs the server from its start to its end, in which it is killed with a dump of all it does.
func (s *search) session(logFormat string) {
	s.collector = providerdtest.StartCollector(s.t)
	server, err := providerdtest.StartProgram(s.t.Context(), s.program, s.folder, append(s.tracing(), s.environment...),
		"--log-level", "debug", "--log-format", logFormat, "--ops-listen", "127.0.0.1:0", "--failed-attempts", "3")
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = server
	s.scanProcess()
	s.learn()
	s.creates()
	s.refusals()
	s.wrongTokens()
	s.pages()
	s.commands()
	s.applies()
	s.withoutKeyset()
	s.spans()
	if err := server.Command.Process.Signal(syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	_ = server.Command.Wait()
	s.scan("standard error, with the dump of a crash", []byte(server.Stderr.String()))
	s.scanFiles(s.t, s.folder)
}

// scanProcess looks at what every user of the machine sees of the server.
func (s *search) scanProcess() {
	for _, name := range []string{"cmdline", "comm", "status"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.server.Command.Process.Pid, name))
		if err != nil {
			s.t.Fatal(err)
		}
		s.scan("the process's "+name, content)
	}
}

// learn makes the tokens and keys known that the program made itself.
func (s *search) learn() {
	if s.environment == nil {
		s.initial = providerdtest.Token(s.t, s.folder)
		s.canary("initial token", s.initial)
	} else {
		s.initial = s.newToken("initial token", "providers_oauth2_create", "providers_workspace_directory_create")
	}
	s.narrow = s.newToken("narrow token", "providers_oauth2_create")
	s.learnKeys()
}

// newToken makes a token that allows operations. Its name begins with that of the canary.
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

// run carries out a command of the operator, and returns what it prints.
func (s *search) run(arguments ...string) string { return s.runWithInput("", arguments...) }

// runWithInput is run of a command that reads its standard input.
func (s *search) runWithInput(input string, arguments ...string) string {
	command := exec.CommandContext(s.t.Context(), s.program)
	command.Args = append([]string{"providerd"}, arguments...)
	command.Dir = s.folder
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), "PROVIDERD_TOKEN="+s.initial, "PROVIDERD_KEYSET="+s.keyset,
		"PROVIDERD_FROM=sqlite:data/providerd.db")
	command.Env = append(command.Env, s.environment...)
	var talk strings.Builder
	command.Stderr = &talk
	output, _ := command.Output()
	what := "the output of " + strings.Join(arguments[:min(2, len(arguments))], " ")
	allowed := "no such"
	if arguments[0] == "token" && arguments[1] == "create" {
		allowed = "narrow token"
	}
	s.scan(what, output, allowed)
	s.talk = talk.String()
	s.scan("the talk of "+what, []byte(s.talk))
	return string(output)
}

// send makes a request and scans the answer: its headers, and its body without the fields that secrets belong in.
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
	rest, err := json.Marshal(record)
	if err != nil {
		s.t.Fatal(err)
	}
	return rest
}

// want notes where the search did not get where it was to look.
func (s *search) want(response *http.Response, status int) {
	if response.StatusCode != status {
		s.astray = append(s.astray, fmt.Sprintf("%s %s: status is %d, want %d",
			response.Request.Method, response.Request.URL.Path, response.StatusCode, status))
	}
}

// backUp makes a backup and restores it, as an operator would. Nobody else can read either.
func (s *search) backUp() {
	for _, line := range []string{
		"backup backup.db", "backup backup.db", "restore backup.db", "restore backup.db --replace",
		"restore backup.db --database sqlite:restored/providerd.db",
	} {
		s.run(strings.Fields(line)...)
	}
	for _, path := range []string{"backup.db", "data/providerd.db", "restored/providerd.db"} {
		info, err := os.Stat(filepath.Join(s.folder, path))
		if err != nil {
			s.astray = append(s.astray, err.Error()+": "+s.talk)
			continue
		}
		if info.Mode() != 0o600 {
			s.leaks = append(s.leaks, fmt.Sprintf("the file %s has the mode %o", path, info.Mode()))
		}
	}
}
