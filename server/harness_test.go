package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/gen/model"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

const (
	oauth2Path             = "/api/v3/providers/oauth2/"
	workspaceDirectoryPath = "/api/v3/providers/workspace_directory/"

	oauth2Operation             = "providers_oauth2_create"
	workspaceDirectoryOperation = "providers_workspace_directory_create"

	flow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
)

// harness is a real server over a real database, and a client that checks every response against the contract.
type harness struct {
	url string
	// path is the file of a SQLite database.
	path     string
	token    string
	database *store.Store
	client   *http.Client
	log      *processtest.Buffer
}

func start(t testing.TB) *harness {
	t.Helper()
	var err error
	h := &harness{client: contracttest.Client(t), log: &processtest.Buffer{}}
	if cluster := os.Getenv(clusterVariable); cluster != "" {
		url, keyset := postgrestest.CreateDatabase(t, cluster, "template1"), filepath.Join(t.TempDir(), "keyset.json")
		h.database, err = storetest.CreatePostgres(t.Context(), url, keyset)
	} else {
		h.path = filepath.Join(t.TempDir(), "test.db")
		h.database, err = storetest.CreateSQLite(t.Context(), h.path, "")
	}
	processtest.Must(t, err)
	t.Cleanup(func() { _ = h.database.Close() })
	h.serve(t)
	h.token = h.newToken(t, "test", time.Hour, oauth2Operation, workspaceDirectoryOperation)
	return h
}

func startParallel(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return start(t)
}

// serve starts a new server and stops the previous one. Each change is applied to its configuration.
func (h *harness) serve(t testing.TB, changes ...func(*server.Config)) *server.Server {
	t.Helper()
	handler := h.newServer(t, changes...)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	h.url = listener.URL
	return handler
}

// newServer returns a server without a listener over the harness's store.
func (h *harness) newServer(t testing.TB, changes ...func(*server.Config)) *server.Server {
	t.Helper()
	config := server.Config{
		Contract: load(t), Store: h.database, Logger: slog.New(slog.NewJSONHandler(h.log, nil)),
		FailedAttempts: 1_000_000,
	}
	for _, change := range changes {
		change(&config)
	}
	return processtest.Try(server.New(config)).Must(t)
}

//nolint:gochecknoglobals // With a contract of its own, each test would spend most of its time on parsing it.
var loadOnce = sync.OnceValues(func() (*contract.Document, error) { return contract.Load(context.Background()) })

func load(t testing.TB) *contract.Document {
	t.Helper()
	return processtest.Try(loadOnce()).Must(t)
}

func (h *harness) newToken(t testing.TB, name string, lifetime time.Duration, operations ...string) string {
	t.Helper()
	text, _, err := h.database.Tokens.Create(t.Context(), token.Grant{Name: name, Operations: operations, ExpiresIn: lifetime})
	processtest.Must(t, err)
	return text
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// post sends a JSON body with the harness's token. Each change is applied to the request before it is sent.
func (h *harness) post(t testing.TB, path, body string, changes ...func(*http.Request)) answer {
	t.Helper()
	return h.send(t, http.MethodPost, path, strings.NewReader(body), append([]func(*http.Request){
		set("Content-Type", "application/json"), set("Authorization", "Bearer "+h.token),
	}, changes...)...)
}

func (h *harness) send(t testing.TB, method, path string, body io.Reader, changes ...func(*http.Request)) answer {
	t.Helper()
	request := processtest.Try(http.NewRequestWithContext(t.Context(), method, h.url+path, body)).Must(t)
	for _, change := range changes {
		change(request)
	}
	response := processtest.Try(h.client.Do(request)).Must(t)
	defer func() { _ = response.Body.Close() }()
	text := processtest.Try(io.ReadAll(response.Body)).Must(t)
	return answer{status: response.StatusCode, header: response.Header, body: text}
}

// set replaces a header field. Without a value it removes the field, with several it sends several.
func set(name string, values ...string) func(*http.Request) {
	return func(request *http.Request) {
		if len(values) == 0 {
			request.Header.Del(name)
			return
		}
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
}

func (a answer) record(t testing.TB) map[string]any {
	t.Helper()
	processtest.Require(t, a.status == http.StatusCreated, "status is %d, want 201: %s", a.status, a.body)
	var record map[string]any
	a.decode(t, &record)
	return record
}

// problem returns the problem of the response, which must have a status and slug.
func (a answer) problem(t testing.TB, status int, slug string) model.Problem {
	t.Helper()
	var problem model.Problem
	a.decode(t, &problem)
	processtest.Expect(t, a.status == status && problem.Type == "/problems/"+slug,
		"status is %d %s, want %d %s: %s", a.status, problem.Type, status, slug, a.body)
	return problem
}

func (a answer) decode(t testing.TB, value any) {
	t.Helper()
	err := contracttest.Decode(a.body, value)
	processtest.Require(t, err == nil, "status %d: %v: %s", a.status, err, a.body)
}

// violations lists the entries of a problem as "pointer code".
func violations(problem model.Problem) []string {
	list := []string{}
	if problem.Errors != nil {
		for _, violation := range *problem.Errors {
			list = append(list, violation.Pointer+" "+violation.Code)
		}
	}
	return list
}

func (a answer) wantEntries(t testing.TB, want ...string) {
	t.Helper()
	processtest.Equal(t, violations(a.problem(t, http.StatusBadRequest, "validation-failed")), want, "entries")
}

func minimal(path string) map[string]any {
	return maps.Clone(map[string]map[string]any{
		oauth2Path: {"name": "n", "authorization_flow": flow},
		workspaceDirectoryPath: {
			"name": "n", "delegated_subject": "admin@example.com", "credentials": map[string]any{"key": "example"},
			"default_group_email_domain": "example.com",
		},
	}[path])
}

func directoryWith(credentials string) string {
	return `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":` + credentials + `}`
}

func oauth2With(members string) string {
	return `{"name":"n","authorization_flow":"` + flow + `",` + members + `}`
}

func with(body map[string]any, name string, value any) map[string]any {
	body = maps.Clone(body)
	body[name] = value
	return body
}

func encode(t testing.TB, value any) string {
	t.Helper()
	return string(processtest.Try(json.Marshal(value)).Must(t))
}

func roundTrip(t testing.TB, value any) (decoded any) {
	t.Helper()
	processtest.Must(t, contracttest.Decode([]byte(encode(t, value)), &decoded))
	return decoded
}

// clusterVariable names a PostgreSQL server; tests then use it instead of SQLite.
const clusterVariable = "PROVIDERD_TEST_CLUSTER"

// TestOverPostgreSQL runs the tests that depend on what the database stores, finds and refuses over PostgreSQL.
func TestOverPostgreSQL(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	const tests = "^Test(Contract$|Fields$|ValidationPredicts|Credentials|OneRequestHas|Retry|ReusedKey|KeyIs|KeyBelongs|LargeList)"
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests)
	command.Env = append(os.Environ(), clusterVariable+"="+cluster.URL("postgres"))
	output, err := command.CombinedOutput()
	processtest.Expect(t, err == nil, "%v\n%s", err, output)
}
