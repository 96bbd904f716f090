package serving_test

import (
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

func TestLogLevels(t *testing.T) {
	t.Parallel()
	client := contracttest.Client(t)
	for arguments, want := range map[string]int{"--log-level=info": 1, "--log-level=error": 0, "--quiet": 0} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := providerdtest.Serve(t, dir, arguments)
			server.Create(t, client)
			server.MustStop(t)
			if lines := strings.Count(server.Stderr.String(), "msg=request"); lines != want {
				t.Errorf("%d lines, want %d: %s", lines, want, server.Stderr)
			}
		})
	}
}

func TestRequestsInFlightFinish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := contracttest.Client(t)
	server := providerdtest.Serve(t, dir)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var acknowledged int
	// The load is running when this many creates are acknowledged.
	const many = 100
	running := make(chan struct{})
	for range 8 {
		group.Go(func() {
			for {
				status, text, err := server.Post(client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
				if err != nil {
					return
				}
				if status != http.StatusCreated {
					t.Errorf("status is %d: %s", status, text)
				}
				mutex.Lock()
				if acknowledged++; acknowledged == many {
					close(running)
				}
				mutex.Unlock()
			}
		})
	}
	<-running
	server.MustStop(t)
	group.Wait()
	stored := len(providerdtest.StoredPKs(t, dir))
	t.Logf("SIGTERM under load: acknowledged %d, stored but not acknowledged %d, missing %d, duplicates 0",
		acknowledged, max(0, stored-acknowledged), max(0, acknowledged-stored))
	if stored != acknowledged {
		t.Errorf("%d records are stored, %d were acknowledged", stored, acknowledged)
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
		dir := t.TempDir()
		_, err = providerdtest.Start(t.Context(), dir, flag, listener.Addr().String())
		if err == nil || !strings.Contains(err.Error(), "exit status 1") ||
			!strings.Contains(err.Error(), "is in use; stop the other process or pass "+flag) {
			t.Errorf("%s: error is %v", flag, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s: the directory has %v, %v", flag, entries, err)
		}
	}
}
