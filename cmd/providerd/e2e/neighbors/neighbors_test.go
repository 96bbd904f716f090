//go:build proof

// Package neighbors_test runs providerd beside the software that its users run beside it: it lets both work under load,
// breaks what breaks in practice, and accounts for each create. It writes the table of the manual's page "Works with".
//
// Start with neighbors_test.go; each neighbor has a file. "make neighbors" runs them all.
package neighbors_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain lets the test binary run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// neighbor is software that runs beside a server. Its trial returns its version and what is left of the creates.
type neighbor struct {
	// name is its title in the table. did says what was done, and know what a user must know.
	name, did, know string
	try             func(t *testing.T) (version string, counted counts)
}

// counts are what callers got and what is stored.
type counts struct{ acknowledged, lost, doubled, refused int }

// TestNeighbors tries each neighbor, one after the other, and replaces its row of the manual.
func TestNeighbors(t *testing.T) {
	for _, of := range [][]neighbor{replicators(), proxies(t.TempDir()), readers(), copiers(), poolers(), collectors(), authorizers(), managers()} {
		for _, n := range of {
			t.Run(n.name, func(t *testing.T) {
				version, c := n.try(t)
				if c.acknowledged == 0 || c.lost > 0 || c.doubled > 0 {
					t.Errorf("%+v", c)
				}
				replaceRow(t, fmt.Sprintf("| %s | %s | %s | %d | %d | %s |",
					n.name, version, n.did, c.acknowledged, c.refused, n.know))
			})
		}
	}
}

// replaceRow replaces the row of the manual's table that has the same first cell.
func replaceRow(t *testing.T, row string) {
	t.Helper()
	t.Log(row)
	const page = "cmd/providerd/manual/works-with.md"
	name, _, _ := strings.Cut(row[2:], " |")
	replaced := regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(name)+` \|.*$`).
		ReplaceAllLiteralString(providerdtest.ReadFile(t, page), row)
	if !strings.Contains(replaced, row) {
		t.Errorf("%s has no row for %s", page, name)
	}
	processtest.Must(t, os.WriteFile(providerdtest.Path(t, page), []byte(replaced), 0o600))
}

// load is callers that create until they are stopped. Half of them send each create again, with its key, until it is
// acknowledged; the others send each once, without a key.
type load struct {
	*providerdtest.Journal
	*providerdtest.Load
	refused atomic.Int64
	// slowest is how long the slowest create of each caller took.
	slowest [callers]time.Duration
}

const callers = 16

// start starts the load. Each caller sends to its server.
func start(t *testing.T, of func(caller int) *providerdtest.Server) *load {
	t.Helper()
	l, client := &load{Journal: providerdtest.NewJournal()}, newClient(t)
	l.Load = providerdtest.StartLoad(callers, func(caller, n int) bool {
		name, begun := fmt.Sprintf("%d-%d", caller, n), time.Now()
		defer func() { l.slowest[caller] = max(l.slowest[caller], time.Since(begun)) }()
		if caller%2 == 0 {
			l.sendOnce(client, of(caller), name)
			return true
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			record, err := of(caller).CreateOnce(client, name)
			if err == nil {
				l.Acknowledge(record)
				return true
			}
			l.refused.Add(1)
			<-time.After(20 * time.Millisecond)
		}
		l.Fail(name, fmt.Errorf("not acknowledged within a minute"))
		return false
	})
	t.Cleanup(l.Stop)
	return l
}

// newClient returns a client that keeps the connections of all callers, and does not check responses: a proxy's own
// break the contract.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{
		MaxIdleConnsPerHost: callers, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: processtest.Timeout}
}

func (l *load) sendOnce(client *http.Client, server *providerdtest.Server, name string) {
	body := strings.Replace(providerdtest.OAuth2Body, "Intranet", name, 1)
	status, text, err := server.Post(client, providerdtest.OAuth2Path, body)
	var pk int64
	if found := regexp.MustCompile(`"pk":(\d+)`).FindStringSubmatch(text); err == nil && status == http.StatusCreated && found != nil {
		_, _ = fmt.Sscan(found[1], &pk)
		l.Acknowledge(providerdtest.Record{Name: name, PK: pk})
		return
	}
	l.refused.Add(1)
	<-time.After(20 * time.Millisecond)
}

// count compares what was acknowledged with what is stored.
func (l *load) count(t *testing.T, stored []providerdtest.Record) counts {
	t.Helper()
	l.Stop()
	pks, c := map[string]int64{}, counts{acknowledged: len(l.Creates), refused: int(l.refused.Load())}
	for _, record := range stored {
		// Callers other than those of the load use other names.
		if strings.Trim(record.Name, "-0123456789") != "" {
			continue
		}
		if _, ok := pks[record.Name]; ok {
			c.doubled++
		}
		pks[record.Name] = record.PK
	}
	for name, record := range l.Creates {
		if pks[name] != record.PK {
			c.lost++
		}
	}
	for name, err := range l.Failures {
		t.Errorf("%s: %v", name, err)
	}
	return c
}

// to sends all creates to one server.
func to(server *providerdtest.Server) func(caller int) *providerdtest.Server {
	return func(int) *providerdtest.Server { return server }
}

// launch starts a program that is killed after the test.
func launch(t *testing.T, program string, arguments ...string) *processtest.Child {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	child, err := processtest.Start(command)
	processtest.Must(t, err)
	t.Cleanup(func() { _ = child.Kill() })
	return child
}

// asAbove is what was done with a neighbor if it is what was done with the previous one, and what to know if that is.
const asAbove, alsoAbove = "the same", "The same."

// install runs commands of bash that install or build something in a directory.
func install(t *testing.T, dir, commands string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=", "GOBIN="+dir)
	processtest.Run(t, command)
}

// printed returns what a regular expression finds in the output of a program, such as its version.
func printed(t *testing.T, pattern, program string, arguments ...string) string {
	t.Helper()
	text := processtest.Run(t, exec.CommandContext(t.Context(), program, arguments...))
	found := regexp.MustCompile(pattern).FindString(text)
	if found == "" {
		t.Fatalf("%s printed %s", program, text)
	}
	return found
}

// write writes a file of the test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	processtest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
