package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
)

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
	var keyset struct {
		Version, DatabaseID []byte
		seal.Wrapped        `gorm:"embedded"`
	}
	if err := db.Reader().WithContext(ctx).Table("keyset").Take(&keyset).Error; err != nil {
		return err
	}
	keys, err := keyset.Open(master, keyset.DatabaseID)
	if err != nil {
		return err
	}
	const maxBatch = 256
	rows := database.Insertion{Table: "providers", Columns: filledColumns(), KeysetVersion: keyset.Version}
	for pk := 1; pk <= count; pk++ {
		row, err := filledRow(keys, pk)
		if err != nil {
			return err
		}
		rows.Rows = append(rows.Rows, row)
		if len(rows.Rows) < maxBatch && pk < count {
			continue
		}
		if _, err := db.Insert(ctx, rows); err != nil {
			return err
		}
		rows.Rows = rows.Rows[:0]
	}
	return nil
}

// filledColumns returns the columns of filledRow: first those of both kinds, then those of one.
func filledColumns() []string {
	return strings.Fields(`uid kind name created_at created_by request_id remote_address idempotency_key secret generated
		property_mappings authorization_flow client_type client_id access_code_validity access_token_validity
		refresh_token_validity include_claims_in_id_token signing_key redirect_uris sub_mode issuer_mode jwks_sources
		property_mappings_group delegated_subject scopes exclude_users_service_account user_delete_action
		group_delete_action default_group_email_domain`)
}

func filledRow(keys *seal.Keys, pk int) ([]any, error) {
	kind, name, secret := "oauth2", "old", fmt.Sprint("secret ", pk)
	if pk%10 == 0 {
		kind, name, secret = "workspace_directory", "directory", `{"key":"example"}`
	}
	uid, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	sealed, err := keys.Seal(seal.NewSecret(secret), seal.Place{Row: uid.String(), Value: "providers.secret." + kind})
	if err != nil {
		return nil, err
	}
	var key any
	if pk%2 == 0 {
		key = rand.Text()
	}
	mappings := `["` + uuid.NewString() + `","` + uuid.NewString() + `"]`
	row := []any{
		uid, kind, fmt.Sprint(name, " ", pk), time.Now().UTC(), "ci", rand.Text(), "192.0.2.1", key, sealed, int64(0), mappings,
	}
	ofOAuth2, ofDirectory := make([]any, 12), make([]any, 7)
	if kind == "oauth2" {
		// In capitals, one in 30 million would contain SECRET, for which there is advice.
		clientID := strings.ToLower(rand.Text() + rand.Text()[:14])
		ofOAuth2 = []any{
			uuid.New(), "confidential", clientID, "minutes=1", "hours=1", "days=30", true, uuid.New(),
			"https://example.com/callback\nhttps://www.example.com/callback", "hashed_user_id", "per_provider", "[]",
		}
	} else {
		ofDirectory = []any{"[]", "admin@example.com", "", false, "do_nothing", "suspend", "example.com"}
	}
	return append(append(row, ofOAuth2...), ofDirectory...), nil
}
