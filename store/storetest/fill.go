package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
)

// fillChunk is how many providers are written in one transaction.
const fillChunk = 20_000

// FillSQLite creates a SQLite database at path, with a keyset next to it and count providers, faster than creates
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
		rows := filling{keys: keys, at: time.Now().UnixMicro()}
		for number := first; number < min(first+fillChunk, count+1); number++ {
			if err := rows.add(int64(number)); err != nil {
				return err
			}
		}
		err := db.Write(ctx, func(tx *gorm.DB) error {
			return errors.Join(insertAll(tx, slices.Concat(commonColumns(), oauth2Columns()), rows.oauth2),
				insertAll(tx, slices.Concat(commonColumns(), directoryColumns()), rows.directories))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// insertAll inserts providers with one prepared statement.
func insertAll(tx *gorm.DB, columns []string, rows [][]any) error {
	// With a cancelable context, the driver would start a goroutine for each row.
	ctx := context.WithoutCancel(tx.Statement.Context)
	statement, err := tx.Statement.ConnPool.PrepareContext(ctx, fmt.Sprintf("INSERT INTO providers (%s) VALUES (?%s)",
		strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1)))
	if err != nil {
		return err
	}
	defer func() { _ = statement.Close() }()
	for _, row := range rows {
		if _, err := statement.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

func commonColumns() []string {
	return strings.Fields("pk uid kind name created_at created_by request_id remote_address idempotency_key secret generated")
}

func oauth2Columns() []string {
	return strings.Fields("authorization_flow property_mappings client_type client_id access_code_validity " +
		"access_token_validity refresh_token_validity include_claims_in_id_token signing_key redirect_uris sub_mode " +
		"issuer_mode jwks_sources")
}

func directoryColumns() []string {
	return strings.Fields("property_mappings property_mappings_group delegated_subject scopes " +
		"exclude_users_service_account user_delete_action group_delete_action default_group_email_domain")
}

// filling holds rows in the form that SQLite inserts.
type filling struct {
	keys                *seal.Keys
	at                  int64
	oauth2, directories [][]any
}

func (f *filling) add(pk int64) error {
	kind, name, secret := "oauth2", "old", fmt.Sprint("secret ", pk)
	if pk%10 == 0 {
		kind, name, secret = "workspace_directory", "directory", `{"key":"example"}`
	}
	uid, err := uuid.NewV7()
	if err != nil {
		return err
	}
	sealed, err := f.keys.Seal(seal.NewSecret(secret), seal.Place{Row: uid.String(), Value: "providers.secret." + kind})
	if err != nil {
		return err
	}
	var key any
	if pk%2 == 0 {
		key = rand.Text()
	}
	common := []any{
		pk, uid.String(), kind, fmt.Sprint(name, " ", pk), f.at, "ci", rand.Text(), "192.0.2.1", key, sealed, int64(0),
	}
	if kind == "oauth2" {
		f.oauth2 = append(f.oauth2, append(common,
			uuid.NewString(), `["`+uuid.NewString()+`","`+uuid.NewString()+`"]`, "confidential",
			rand.Text()+rand.Text()[:14], "minutes=1", "hours=1", "days=30", true, uuid.NewString(),
			"https://example.com/callback\nhttps://www.example.com/callback", "hashed_user_id", "per_provider", "[]"))
		return nil
	}
	f.directories = append(f.directories, append(common,
		"[]", `["`+uuid.NewString()+`"]`, "admin@example.com", "", false, "do_nothing", "suspend", "example.com"))
	return nil
}
