package command

import (
	"fmt"
	"os"
	"slices"
	"strings"
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
	client, made := contracttest.Client(t), newJournal()
	load := made.load(8, "load", func(name string) (created, error) {
		return onlyCreated(server.create(client, folder, name, ""))
	})
	operate(t, folder, "key", "rotate")
	output := operate(t, folder, "key", "reseal")
	load.end()
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("while the key was rotated and %s %d creates were made", strings.TrimSpace(output), len(made.creates))
	isOld := func(one created) bool { return strings.HasPrefix(one.name, "old ") }
	made.compare(t, slices.DeleteFunc(storedIn(t, folder), isOld))
	if len(made.creates) == 0 {
		t.Error("no creates were made")
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
	found := 0
	for _, one := range storedIn(t, folder) {
		number, old := strings.CutPrefix(one.name, "old ")
		if !old {
			continue
		}
		found++
		if one.secret != "secret "+number {
			t.Errorf("provider %d, which is number %s, has the secret %q", one.pk, number, one.secret)
		}
	}
	if found != rows {
		t.Errorf("%d old providers are found, want %d", found, rows)
	}
	database := openData(t, folder, storetest.OpenSQLite)
	defer func() { _ = database.Close() }()
	if err := database.Reseal(t.Context(), func(_, total int64) {
		if total != 0 {
			t.Errorf("%d secrets are sealed with an old key", total)
		}
	}); err != nil {
		t.Error(err)
	}
}
