package providerdtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"example.com/providerd/store"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Record is a provider, from a response or from the database.
type Record struct {
	Name string
	PK   int64
	// Secret is the client secret or the credentials.
	Secret string
}

// openData opens the database of a server in dir.
func openData(t *testing.T, dir string) *store.Store {
	t.Helper()
	return processtest.Try(storetest.OpenSQLite(t.Context(), filepath.Join(dir, "data", "providerd.db"), "")).Must(t)
}

// Stored returns the providers in the database of a server in dir.
func Stored(t *testing.T, dir string) []Record {
	t.Helper()
	return readAll(t, openData(t, dir))
}

// readAll returns the providers of a database, ordered by pk, and closes it.
func readAll(t *testing.T, database *store.Store) (found []Record) {
	t.Helper()
	opened := database.Providers.Opened(t.Context(), database.Providers.List(t.Context(), store.Filter{}, 0))
	for stored, err := range opened {
		processtest.Must(t, err)
		record := Record{Name: stored.Common().Name, PK: stored.Common().PK}
		switch provider := stored.(type) {
		case records.OAuth2Provider:
			record.Secret = provider.ClientSecret.Reveal()
		case records.WorkspaceDirectoryProvider:
			record.Secret = provider.Credentials.Reveal()
		}
		found = append(found, record)
	}
	processtest.Check(t, database.Close())
	return found
}

// StoredPKs returns the pks of the providers in the database of a server in dir.
func StoredPKs(t *testing.T, dir string) (pks []int64) {
	t.Helper()
	for _, record := range Stored(t, dir) {
		pks = append(pks, record.PK)
	}
	return pks
}

// Fill creates a database for a server in dir, with as many providers of both kinds as rows.
func Fill(t *testing.T, dir string, rows int) {
	t.Helper()
	storetest.FillSQLite(t, filepath.Join(dir, "data", "providerd.db"), rows)
}

// CheckFilled checks that the providers that Fill created are stored with their secrets, sealed with the newest key.
func CheckFilled(t *testing.T, dir string, rows int) {
	t.Helper()
	found := 0
	for _, record := range Stored(t, dir) {
		number, isOAuth2 := strings.CutPrefix(record.Name, "old ")
		isDirectory := strings.HasPrefix(record.Name, "directory ")
		if isOAuth2 && record.Secret != "secret "+number || isDirectory && record.Secret != `{"key":"example"}` {
			t.Errorf("provider %d, %s, has the secret %q", record.PK, record.Name, record.Secret)
		}
		if isOAuth2 || isDirectory {
			found++
		}
	}
	processtest.Equal(t, found, rows, "providers of the first ones")
	database := openData(t, dir)
	_, err := database.Keys.Reseal(t.Context(), func(_, total int64) {
		processtest.Equal(t, total, 0, "secrets sealed with an old key")
	})
	processtest.Check(t, err, database.Close())
}

// Execute runs SQL statements in a database, as another program would: that of a PostgreSQL URL, or a SQLite file.
func Execute(ctx context.Context, database string, statements ...string) (err error) {
	driver := "sqlite3"
	if strings.HasPrefix(database, "postgres:") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, strings.TrimPrefix(database, "sqlite:"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// CheckIntegrity runs SQLite's integrity check on a database.
func CheckIntegrity(t *testing.T, path string) {
	t.Helper()
	db := processtest.Try(sql.Open("sqlite3", path)).Must(t)
	var verdict string
	processtest.Check(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict), db.Close())
	processtest.Equal(t, verdict, "ok", "integrity_check")
}

// CheckBackup restores dir/backup.db in a new directory, and serves it. The restored records must be the oldest ones in
// dir, and include those wanted.
func CheckBackup(t *testing.T, dir string, wanted map[string]Record) {
	t.Helper()
	restored := t.TempDir()
	RunShell(t, restored, "mkdir --mode=700 data; cp --preserve=mode "+dir+"/data/keyset.json data; providerd restore "+dir+"/backup.db")
	Serve(t, restored).Stop(t)
	all, found := Stored(t, dir), Stored(t, restored)
	processtest.Require(t, len(found) <= len(all) && slices.Equal(found, all[:len(found)]),
		"the %d restored records are not the oldest of %d", len(found), len(all))
	t.Logf("restored %d records, %d of them created before the backup began", len(found), len(wanted))
	CheckIncludes(t, found, wanted)
}

// CheckIncludes checks that acknowledged records are stored, each once and as acknowledged. There may be others.
func CheckIncludes(t *testing.T, stored []Record, acknowledged map[string]Record) {
	t.Helper()
	found, duplicates, lost := map[string]Record{}, 0, map[string]Record{}
	for _, record := range stored {
		if _, isDuplicate := found[record.Name]; isDuplicate {
			duplicates++
		}
		found[record.Name] = record
	}
	for name, record := range acknowledged {
		if found[name] != record {
			lost[name] = record
		}
	}
	processtest.Expect(t, len(lost)+duplicates == 0,
		"%d of %d acknowledged records are lost, such as %v; %d of the stored ones are duplicates", len(lost),
		len(acknowledged), Sample(lost), duplicates)
}

// ClearKey is a key in cleartext.
type ClearKey struct {
	// Kind is "master", "data" for a key that encrypts secrets, or "digest".
	Kind string
	ID   uint32
	// Key is 32 bytes.
	Key []byte
}

// ClearKeys returns the master keys in a keyset file, and the keys in a database that they encrypt. Driver and source
// are those of database/sql.
func ClearKeys(path, driver, source string) ([]ClearKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	master, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, err
	}
	opener, err := aead.New(master)
	if err != nil {
		return nil, err
	}
	var id, secrets, digest []byte
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	err = db.QueryRow("SELECT database_id, secret_keys, digest_key FROM keyset").Scan(&id, &secrets, &digest)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	keys := clearKeys("master", master)
	for kind, wrapped := range map[string][]byte{"data": secrets, "digest": digest} {
		opened, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(wrapped)), opener, id)
		if err != nil {
			return nil, err
		}
		keys = append(keys, clearKeys(kind, opened)...)
	}
	return keys, nil
}

func clearKeys(kind string, from *keyset.Handle) (keys []ClearKey) {
	for _, key := range insecurecleartextkeyset.KeysetMaterial(from).GetKey() {
		// The encoding of a key ends with the key itself.
		const size = 32
		encoded := key.GetKeyData().GetValue()
		keys = append(keys, ClearKey{Kind: kind, ID: key.GetKeyId(), Key: encoded[len(encoded)-size:]})
	}
	return keys
}
