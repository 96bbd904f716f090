package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// defaultResealRows is for an ordinary run; make reseal asks for more.
const defaultResealRows = 2_000

// TestResealUnderLoad rotates the key and reseals all old secrets while creates go on, none of which may fail.
func TestResealUnderLoad(t *testing.T) {
	t.Parallel()
	rows := countFrom(t, "PROVIDERD_RESEAL_ROWS", defaultResealRows)
	folder := t.TempDir()
	storeSecrets(t, folder, rows)
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var created, failed atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	client := contracttest.Client(t)
	const callers = 8
	for range callers {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, _, err := server.post(client, folder, oauth2Path,
					`{"name":"load","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`)
				if err != nil || status != http.StatusCreated {
					failed.Add(1)
					continue
				}
				created.Add(1)
			}
		})
	}
	operate(t, folder, "key", "rotate")
	output := operate(t, folder, "key", "reseal")
	close(stop)
	group.Wait()
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("while the key was rotated and %s %d creates were made, %d failed",
		strings.TrimSpace(output), created.Load(), failed.Load())
	if failed.Load() > 0 || created.Load() == 0 {
		t.Errorf("%d creates were made, %d failed: %s", created.Load(), failed.Load(), server.stderr)
	}
	checkSecrets(t, folder, rows)
}

// operate runs a command of the operator and returns what it says.
func operate(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	return operateWith(t, os.Args[0], folder, arguments...)
}

// operateWith is operate for a program of another build.
func operateWith(t *testing.T, program, folder string, arguments ...string) string {
	t.Helper()
	command := newCommand(t.Context(), folder, arguments...)
	command.Path = program
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, output)
	}
	return string(output)
}

func openData(
	t *testing.T, folder string, open func(ctx context.Context, path, keysetPath string) (*store.Store, error),
) *store.Store {
	t.Helper()
	database, err := open(t.Context(), filepath.Join(folder, "data", "providerd.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// storeSecrets makes a database with this many providers, whose secrets are "secret" and their number.
func storeSecrets(t *testing.T, folder string, rows int) {
	t.Helper()
	database := openData(t, folder, storetest.CreateSQLite)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(256)
	for i := range rows {
		group.Go(func() error {
			_, _, err := database.CreateOAuth2Provider(ctx, store.CreateRequest{Name: fmt.Sprintf("old %d", i)},
				store.OAuth2Settings{
					ClientID: fmt.Sprint(i), ClientSecret: store.NewSecret(fmt.Sprintf("secret %d", i)),
					PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
				})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkSecrets reads what storeSecrets stored.
func checkSecrets(t *testing.T, folder string, rows int) {
	t.Helper()
	database := openData(t, folder, storetest.OpenSQLite)
	defer func() { _ = database.Close() }()
	found := 0
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		provider, ok := record.(store.OAuth2Provider)
		number, old := strings.CutPrefix(provider.Name, "old ")
		if !ok || !old {
			continue
		}
		found++
		if secret := provider.ClientSecret.Reveal(); secret != "secret "+number {
			t.Errorf("provider %d, which is number %s, has the secret %q", provider.PK, number, secret)
		}
	}
	if found != rows {
		t.Errorf("%d old providers are found, want %d", found, rows)
	}
	if err := database.Reseal(t.Context(), func(_, total int64) {
		if total != 0 {
			t.Errorf("%d secrets are sealed with an old key", total)
		}
	}); err != nil {
		t.Error(err)
	}
}
