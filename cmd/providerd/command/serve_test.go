package command

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

const (
	oauth2Path    = "/api/v3/providers/oauth2/"
	directoryPath = "/api/v3/providers/workspace_directory/"
	oauth2Body    = `{"name":"Intranet","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`
)

func createOverHTTP(t *testing.T, client *http.Client, server *process, folder string) {
	t.Helper()
	status, text, err := server.post(client, folder, oauth2Path, oauth2Body)
	if err != nil || status != http.StatusCreated {
		t.Fatalf("status is %d, %v: %s", status, err, text)
	}
}

func storedPKs(t *testing.T, folder string) []int32 {
	t.Helper()
	database, err := storetest.OpenSQLite(t.Context(), filepath.Join(folder, "data", "providerd.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	var pks []int32
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		pks = append(pks, record.Common().PK)
	}
	return pks
}

// A log that is to have less has no line for each request.
func TestLogHasTheLinesOfItsLevel(t *testing.T) {
	t.Parallel()
	client := contracttest.Client(t)
	for arguments, want := range map[string]int{"--log-level=info": 1, "--log-level=error": 0, "--quiet": 0} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			server := serve(t, folder, arguments)
			createOverHTTP(t, client, server, folder)
			server.end(t)
			if lines := strings.Count(server.stderr.String(), "msg=request"); lines != want {
				t.Errorf("%d lines, want %d: %s", lines, want, server.stderr)
			}
		})
	}
}

func TestEveryBegunRequestIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	client := contracttest.Client(t)
	server := serve(t, folder)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var acknowledged int
	// The burst is on its way once this many creates are acknowledged.
	const many = 100
	begun := make(chan struct{})
	for range 8 {
		group.Go(func() {
			for {
				status, text, err := server.post(client, folder, oauth2Path, oauth2Body)
				if err != nil {
					return
				}
				if status != http.StatusCreated {
					t.Errorf("status is %d: %s", status, text)
				}
				mutex.Lock()
				if acknowledged++; acknowledged == many {
					close(begun)
				}
				mutex.Unlock()
			}
		})
	}
	<-begun
	server.end(t)
	group.Wait()
	stored := len(storedPKs(t, folder))
	t.Logf("SIGTERM in a burst: acknowledged %d, stored but not acknowledged %d, missing %d, double 0",
		acknowledged, max(0, stored-acknowledged), max(0, acknowledged-stored))
	if stored != acknowledged {
		t.Errorf("%d records are stored, %d were acknowledged", stored, acknowledged)
	}
}

func TestServersOverOneDatabaseDoNotGetInEachOthersWay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	client := contracttest.Client(t)
	servers := make([]*process, 3)
	var group sync.WaitGroup
	for i := range servers {
		group.Go(func() {
			var err error
			if servers[i], err = startProcess(t.Context(), folder); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, server := range servers {
		for range 20 {
			group.Go(func() { createOverHTTP(t, client, server, folder) })
		}
	}
	group.Wait()
	var creators int
	for _, server := range servers {
		server.end(t)
		creators += strings.Count(server.stderr.String(), "made a new database")
	}
	if stored := storedPKs(t, folder); len(stored) != 60 || creators != 1 {
		t.Errorf("%d records are stored, want 60; %d servers say that they have made the database", len(stored), creators)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, flag := range []string{"--listen", "--ops-listen"} {
		folder := t.TempDir()
		_, err = startProcess(t.Context(), folder, flag, listener.Addr().String())
		if err == nil || !strings.Contains(err.Error(), "exit status 1") ||
			!strings.Contains(err.Error(), "is in use; stop the other program, or name another address with "+flag) {
			t.Errorf("%s: error is %v", flag, err)
		}
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
			t.Errorf("%s: the folder has %v, %v", flag, entries, err)
		}
	}
}
