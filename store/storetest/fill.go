package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
)

// fillChunk is how many providers are written in one transaction.
const fillChunk = 20_000

// FillSQLite creates a SQLite database at path, with a keyset beside it and count providers, faster than creates
// could. Provider N has the name "old N" and the secret "secret N". Every tenth is a directory instead, and every
// second has an idempotency key.
func FillSQLite(ctx context.Context, path string, count int) error {
	opened, err := CreateSQLite(ctx, path, "")
	if err != nil {
		return err
	}
	if err := opened.Close(); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, db, count), db.Close())
}

func fill(ctx context.Context, db *sqlite.Database, count int) error {
	master, err := seal.ReadMasterKeys(keysetPath(db, ""))
	if err != nil {
		return err
	}
	var row struct {
		DatabaseID   []byte
		seal.Wrapped `gorm:"embedded"`
	}
	if err := db.Reader().WithContext(ctx).Table("keyset").Take(&row).Error; err != nil {
		return err
	}
	keys, err := row.Open(master, row.DatabaseID)
	if err != nil {
		return err
	}
	for first := 1; first <= count; first += fillChunk {
		rows := filling{keys: keys, at: time.Now().UTC().Truncate(time.Microsecond)}
		for number := first; number < min(first+fillChunk, count+1); number++ {
			if err := rows.add(int32(number)); err != nil {
				return err
			}
		}
		if err := db.Change(ctx, func(tx *gorm.DB) error { return rows.insert(db, tx) }); err != nil {
			return err
		}
	}
	return nil
}

// filling holds rows in the form that database.Movable inserts.
type filling struct {
	keys                           *seal.Keys
	at                             time.Time
	providers, oauth2, directories [][]any
}

func (f *filling) add(pk int32) error {
	var key, fingerprint any
	if pk%2 == 0 {
		key = rand.Text()
		var err error
		if fingerprint, err = f.keys.Fingerprint([]byte(fmt.Sprint("digest ", pk))); err != nil {
			return err
		}
	}
	common := func(kind, name string) []any {
		return []any{int64(pk), kind, fmt.Sprint(name, " ", pk), f.at, "ci", rand.Text(), "192.0.2.1", key, fingerprint}
	}
	if pk%10 == 0 {
		sealed, err := f.keys.Seal(seal.NewSecret(`{"key":"example"}`),
			seal.Place{Table: "workspace_directory_providers", Column: "credentials", PK: pk})
		f.providers = append(f.providers, common("workspace_directory", "directory"))
		f.directories = append(f.directories, []any{
			int64(pk), "[]", `["` + uuid.NewString() + `"]`, "admin@example.com", sealed, "", false, nil, "do_nothing",
			"suspend", "example.com",
		})
		return err
	}
	sealed, err := f.keys.Seal(seal.NewSecret(fmt.Sprint("secret ", pk)),
		seal.Place{Table: "oauth2_providers", Column: "client_secret", PK: pk})
	f.providers = append(f.providers, common("oauth2", "old"))
	f.oauth2 = append(f.oauth2, []any{
		int64(pk), nil, uuid.NewString(), `["` + uuid.NewString() + `","` + uuid.NewString() + `"]`, "confidential",
		rand.Text() + rand.Text()[:14], sealed, "minutes=1", "hours=1", "days=30", true, uuid.NewString(),
		"https://example.com/callback\nhttps://www.example.com/callback", "hashed_user_id", "per_provider", "[]",
	})
	return err
}

func (f *filling) insert(db database.Movable, tx *gorm.DB) error {
	return errors.Join(
		db.Insert(tx, "providers", []string{
			"pk", "kind", "name", "created_at", "created_by", "request_id", "remote_address", "idempotency_key", "fingerprint",
		}, f.providers),
		db.Insert(tx, "workspace_directory_providers", []string{
			"pk", "property_mappings", "property_mappings_group", "delegated_subject", "credentials", "scopes",
			"exclude_users_service_account", "filter_group", "user_delete_action", "group_delete_action",
			"default_group_email_domain",
		}, f.directories),
		db.Insert(tx, "oauth2_providers", []string{
			"pk", "authentication_flow", "authorization_flow", "property_mappings", "client_type", "client_id", "client_secret",
			"access_code_validity", "access_token_validity", "refresh_token_validity", "include_claims_in_id_token",
			"signing_key", "redirect_uris", "sub_mode", "issuer_mode", "jwks_sources",
		}, f.oauth2),
	)
}
