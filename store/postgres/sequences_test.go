//go:build slow

package postgres_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// newCopied returns the URL of a database with rows that another program has copied: four providers, of which the last
// was deleted, an application and a token. Their sequences are new.
func newCopied(t *testing.T, cluster *postgrestest.Cluster, keyset string) (url string) {
	t.Helper()
	source := cluster.CreateDatabase(t)
	opened := openStore(t, source, keyset)
	createEach(t, opened, "a", "b", "c", "deleted")
	_, err := opened.Applications.Create(t.Context(), records.Application{Name: "a", Slug: "a"})
	processtest.Must(t, err, opened.Providers.Delete(t.Context(), []int64{4}))
	_, _, err = opened.Tokens.Create(t.Context(), grant("a"))
	processtest.Must(t, err)
	url = newMigrated(t, cluster)
	copyRows(t, cluster, source, url)
	return url
}

// copyRows copies rows as pg_dump does, without triggers and sequences. pg_dump refuses newer servers.
func copyRows(t *testing.T, cluster *postgrestest.Cluster, source, target string) {
	processtest.Run(t, cluster.Command("bash", "-euo", "pipefail", "-c", `for table in providers applications backchannels tokens keyset events; do
		psql --command="COPY $table TO STDOUT" "$1" | psql --quiet --set=ON_ERROR_STOP=1 \
			--command='SET session_replication_role = replica' --command="COPY $table FROM STDIN" "$2"
	done`, "bash", source, target))
}

func grant(name string) token.Grant {
	return token.Grant{Name: name, Operations: []string{}, ExpiresIn: time.Hour}
}

// expectNext creates a provider and a token, and checks that the keys are above the largest in use, and the log.
func expectNext(t *testing.T, opened *store.Store, name string, above int64) {
	t.Helper()
	request, settings := keyedRequest(name)
	record, _, err := opened.Providers.CreateOAuth2(t.Context(), request, settings)
	processtest.Expect(t, err == nil && record.PK > above,
		"%s: pk is %d, want one above %d, %v", name, record.PK, above, err)
	if _, _, err := opened.Tokens.Create(t.Context(), grant(name)); err != nil {
		t.Errorf("%s: create a token: %v", name, err)
	}
	for found, err := range opened.Log.Contradictions(t.Context()) {
		t.Errorf("%s: the log says %v, %v", name, found, err)
	}
}

// A sequence that is behind moves past all rows and deleted providers when a server opens the database, even if several
// do at the same time, or when a command writes. No pk is given twice.
func TestSequencesBehind(t *testing.T) {
	t.Parallel()
	cluster, keyset := postgrestest.NewCluster(t), newKeyset(t)
	copied := databaseOf(t, newCopied(t, cluster, keyset))
	const far = 2_000_000_000
	for name, test := range map[string]struct {
		statement string
		above     int64
		warnings  int
	}{
		"nothing": {"SELECT setval('providers_pk_seq', 4), setval('applications_id_seq', 1), setval('tokens_id_seq', 1), " +
			"setval('events_id_seq', max(id)) FROM events", 4, 0},
		"all":           {"SELECT 1", 4, 4},
		"deleted pk":    {"SELECT setval('providers_pk_seq', 3)", 4, 4},
		"events":        {"SELECT setval('providers_pk_seq', 4), setval('tokens_id_seq', 1), setval('applications_id_seq', 1)", 4, 1},
		"several steps": {"UPDATE events SET subject = 600000 WHERE event = 'provider deleted' OR subject = 4", 600_000, 4},
		"far":           {fmt.Sprintf("UPDATE events SET subject = %d WHERE event = 'provider deleted' OR subject = 4", far), far, 4},
		"other name":    {`CREATE SCHEMA "Other's"; ALTER SEQUENCE providers_pk_seq RENAME TO "Other's"`, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.CopyDatabase(t, copied)
			cluster.Exec(t, databaseOf(t, url), test.statement)
			var log processtest.Buffer
			opened := make([]*store.Store, 2)
			var group sync.WaitGroup
			for i := range opened {
				group.Go(func() {
					database, err := postgres.Create(t.Context(), parse(t, url), slog.New(slog.NewTextHandler(&log, nil)))
					if err == nil {
						opened[i], err = store.Create(t.Context(), database, keyset)
					}
					processtest.Check(t, err)
				})
			}
			group.Wait()
			for i, opened := range opened {
				group.Go(func() { expectNext(t, processtest.Closing(t, opened, nil), fmt.Sprint("next ", i), test.above) })
			}
			group.Wait()
			processtest.Equal(t, strings.Count(log.String(), "moved a sequence that was behind the keys in its table"),
				test.warnings, "warnings: %s", log.String())
		})
	}
	operator := openOperator(t, cluster.CopyDatabase(t, copied), keyset)
	processtest.Try(operator.Keys.Rotate(t.Context())).Must(t)
	expectNext(t, operator, "command", 4)
}

// A role that may not move a sequence is refused with the missing privilege, and one that only reads is not.
func TestSequencesOfAnotherRole(t *testing.T) {
	t.Parallel()
	cluster, keyset := postgrestest.NewCluster(t), newKeyset(t)
	url := newCopied(t, cluster, keyset)
	cluster.Exec(t, databaseOf(t, url), "CREATE ROLE server LOGIN PASSWORD 'server'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO server")
	as := with(url, "user=server&password=server")
	expect := func(says string) {
		t.Helper()
		opened, err := storetest.CreatePostgres(t.Context(), as, keyset)
		if err == nil {
			err = opened.Close()
		}
		if says == "" && err != nil || says != "" && (!errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), says)) {
			t.Errorf("error is %v, want %q", err, says)
		}
	}
	const denied = "ERROR: permission denied for sequence providers_pk_seq (SQLSTATE 42501); grant the role in the URL " +
		"USAGE on it"
	expect(denied)
	reader := openOperator(t, as, keyset)
	expectSecrets(t, reader, "a", "b", "c")
	cluster.Exec(t, databaseOf(t, url), "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO server")
	expect(denied)
	cluster.Exec(t, databaseOf(t, url), "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO server")
	expect("")
}

// A sequence at its end is named.
func TestSequencesAtTheirEnd(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	keyset := newKeyset(t)
	createEach(t, openStore(t, url, keyset), "before")
	cluster.Exec(t, databaseOf(t, url), "SELECT setval('events_id_seq', 9223372036854775807)")
	_, err := storetest.CreatePostgres(t.Context(), url, keyset)
	const says = "sequence events_id_seq is at its end, 9223372036854775807, so no row can be added to table events; " +
		"use ALTER SEQUENCE to restore the MAXVALUE that the migrations set, or restore a backup"
	processtest.Expect(t, errors.Is(err, store.ErrUnavailable) && strings.HasSuffix(err.Error(), says),
		"error is %v, want %q", err, says)
	if _, err := inspect(t, url).Check(t.Context()); !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), says) {
		t.Errorf("error is %v, want %q", err, says)
	}
}
