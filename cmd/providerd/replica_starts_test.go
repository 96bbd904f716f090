package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestManyReplicasStartAtOnce starts ten replicas at a time on an empty database, behind a pooler that gives each
// transaction another connection. All come up, and create.
func TestManyReplicasStartAtOnce(t *testing.T) {
	t.Parallel()
	rounds := countFrom(t, "PROVIDERD_START_ROUNDS", 1)
	const replicas = 10
	cluster := postgrestest.NewCluster(t)
	for round := range rounds {
		pooler := postgrestest.NewPgBouncer(t, cluster)
		parsed, err := url.Parse(cluster.CreateDatabase(t))
		if err != nil {
			t.Fatal(err)
		}
		f := &fleet{
			program: os.Args[0],
			folder:  t.TempDir(), client: contracttest.Client(t), replicas: make([]*process, replicas),
			url: pooler.URL(strings.TrimPrefix(parsed.Path, "/")) + "&default_query_exec_mode=exec",
		}
		f.begin(t)
		var group sync.WaitGroup
		for i := range replicas {
			group.Go(func() { f.persist(t, i, fmt.Sprint("of-replica-", i)) })
		}
		group.Wait()
		if found := f.records(t); len(found) != replicas {
			t.Errorf("round %d: %d records are stored", round, len(found))
		}
		f.stop(t)
		// It would keep its connections to this database.
		pooler.Close()
	}
	t.Logf("%d times, %d replicas came up", rounds, replicas)
}

// The password may be in a file, as with every program that uses libpq.
func TestPasswordFromAFile(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	parsed, err := url.Parse(cluster.CreateDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	passwords := filepath.Join(folder, "passwords")
	if err := os.WriteFile(passwords, []byte("*:*:*:*:"+cluster.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	create := newCommand(t.Context(), folder, "key", "create", "--keyset", "keyset.json")
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	parsed.User = url.User(parsed.User.Username())
	withFile := *parsed
	withFile.RawQuery += "&passfile=" + url.QueryEscape(passwords)
	for name, start := range map[string]struct{ url, environment string }{
		"PGPASSFILE": {parsed.String(), "PGPASSFILE=" + passwords},
		"passfile":   {withFile.String(), "PGPASSFILE="},
	} {
		server, err := startProcessWith(t.Context(), folder, []string{start.environment},
			"--database", start.url, "--keyset", "keyset.json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := server.stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = startProcessWith(t.Context(), folder, []string{"PGPASSFILE="}, "--database", parsed.String(), "--keyset", "keyset.json")
	if err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("without a password: %v", err)
	}
}
