//go:build slow

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
)

// Settings of the role or the database do no harm, whether a pooler is in between or not: while one caller sends every
// character, the creates of others are stored, and every value is stored in UTF-8 and returned as sent.
func TestSettingsOfTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	pooled := postgrestest.NewPgBouncer(t, cluster)
	for name, settings := range map[string][]string{
		"LATIN1":    {"client_encoding = LATIN1", "standard_conforming_strings = off"},
		"SQL_ASCII": {"client_encoding = SQL_ASCII", "array_nulls = off"},
		"UTF8":      {"client_encoding = UTF8", "DateStyle = 'SQL, DMY'", "TimeZone = 'Asia/Kathmandu'"},
		"WIN1252":   {"client_encoding = WIN1252", "DateStyle = 'German'", "standard_conforming_strings = off"},
		"isolation": {"default_transaction_isolation = serializable", "default_transaction_deferrable = on"},
		"log":       {"client_min_messages = log", "log_duration = on"},
		"debug1":    {"client_min_messages = debug1", "log_duration = on"},
		"debug5":    {"client_min_messages = debug5", "log_duration = on"},
	} {
		for _, isPooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled: %v", name, isPooled), func(t *testing.T) {
				t.Parallel()
				direct := cluster.CreateDatabase(t)
				url := direct
				for _, setting := range settings {
					cluster.Exec(t, "postgres", "ALTER DATABASE "+databaseOf(t, url)+" SET "+setting,
						"ALTER ROLE postgres IN DATABASE "+databaseOf(t, url)+" SET "+setting)
				}
				if isPooled {
					url = pooled(databaseOf(t, url))
				}
				opened := openStore(t, url, newKeyset(t))
				createEveryCharacter(t, opened)
				if err := opened.Ready(t.Context()); err != nil {
					t.Error(err)
				}
				var size int
				const query = "SELECT sum(octet_length(name)) FROM providers WHERE client_id LIKE 'characters %'"
				if err := viewAfter(t, cluster, direct, "").Reader().Raw(query).Scan(&size).Error; err != nil || size != len(strings.Join(everyCharacter(), "")) {
					t.Errorf("the names have %d bytes, %v", size, err)
				}
			})
		}
	}
}

func createEveryCharacter(t *testing.T, opened *store.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				createEach(t, opened, fmt.Sprint(i, "/", n))
			}
		})
	}
	for i, name := range everyCharacter() {
		request, settings := keyedRequest(fmt.Sprint("characters ", i))
		request.Name, settings.ClientSecret = name, store.NewSecret(name)
		record, _, err := opened.CreateOAuth2Provider(t.Context(), request, settings)
		if err != nil {
			t.Errorf("name %.10q: %v", name, err)
			continue
		}
		read, err := opened.Provider(t.Context(), record.PK)
		if err != nil || read.Common().Name != name || !read.Common().CreatedAt.Equal(record.CreatedAt.Time) ||
			read.(store.OAuth2Provider).ClientSecret.Reveal() != name {
			t.Errorf("name %.10q: read %.10q of %v, want %v, %v",
				name, read.Common().Name, read.Common().CreatedAt, record.CreatedAt, err)
		}
	}
	cancel()
	others.Wait()
	for _, err := range opened.Opened(t.Context(), opened.Providers(t.Context(), store.Filter{}, 0)) {
		if err != nil {
			t.Error(err)
		}
	}
}

// everyCharacter returns texts that together have every character except U+0000.
func everyCharacter() (texts []string) {
	var text strings.Builder
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			text.WriteRune(r)
		}
		if text.Len() > 100_000 || r == unicode.MaxRune {
			texts = append(texts, text.String())
			text.Reset()
		}
	}
	return texts
}

// TestStoreBehindAPooler runs the suite with a pooler, which may give each transaction another connection.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	pooled := postgrestest.NewPgBouncer(t, cluster)
	runSuite(t, cluster, func(url string) string { return pooled(databaseOf(t, url)) })
}
