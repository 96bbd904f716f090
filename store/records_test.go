package store_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// Every column of the table is a field of a record. storetest finds fields that have no column.
func TestEveryColumnIsAField(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Create(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	columns, err := db.Reader().Migrator().ColumnTypes("providers")
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, model := range []any{&store.OAuth2Provider{}, &store.WorkspaceDirectoryProvider{}} {
		parsed, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, parsed.DBNames...)
	}
	for _, column := range columns {
		if !slices.Contains(fields, column.Name()) {
			t.Errorf("no record has the column %s", column.Name())
		}
	}
	if err := db.Close(); err != nil || len(columns) == 0 {
		t.Errorf("%d columns, %v", len(columns), err)
	}
}

// The table refuses rows that no create makes: those with a NULL that their kind must not have, with a value that is not
// of its enumeration, or with one of another type.
func TestConstraintsOfProviders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	opened := create(t, path)
	_, _, err := opened.CreateWorkspaceDirectoryProvider(t.Context(), store.CreateRequest{}, storetest.FullWorkspaceDirectory())
	if err := errors.Join(err, add(t.Context(), opened, "x")); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	isRefused := func(kind store.Kind, column, value string) bool {
		err := db.Write(t.Context(), func(tx *gorm.DB) error {
			changed := tx.Exec("UPDATE providers SET "+column+" = "+value+" WHERE kind = ?", kind)
			if changed.Error == nil && changed.RowsAffected == 1 {
				return errRolledBack
			}
			return changed.Error
		})
		return !errors.Is(err, errRolledBack)
	}
	columns, err := db.Reader().Migrator().ColumnTypes("providers")
	if err != nil {
		t.Fatal(err)
	}
	for kind, nullable := range map[store.Kind]string{
		store.KindOAuth2: "idempotency_key authentication_flow signing_key " +
			"property_mappings_group delegated_subject scopes exclude_users_service_account filter_group " +
			"user_delete_action group_delete_action default_group_email_domain",
		store.KindWorkspaceDirectory: "idempotency_key filter_group " +
			"client_id authentication_flow authorization_flow client_type access_code_validity access_token_validity " +
			"refresh_token_validity include_claims_in_id_token signing_key redirect_uris sub_mode issuer_mode jwks_sources",
	} {
		for _, column := range columns {
			if name := column.Name(); isRefused(kind, name, "NULL") == slices.Contains(strings.Fields(nullable), name) {
				t.Errorf("%s: whether %s can be NULL is wrong", kind, name)
			}
		}
	}
	for column, values := range map[string][]string{
		"pk": {"0", "-1", "'text'"}, "uid": {"''", "'short'"}, "kind": {"''", "'other'"}, "created_at": {"'2026-01-01'", "1.5"},
		"generated": {"-1", "4"}, "client_type": {"'other'", "''"}, "sub_mode": {"'other'"}, "issuer_mode": {"'other'"},
		"include_claims_in_id_token": {"2", "'true'"}, "secret": {"'text'"},
	} {
		for _, value := range values {
			if !isRefused(store.KindOAuth2, column, value) {
				t.Errorf("%s can be %s", column, value)
			}
		}
	}
	for column, value := range map[string]string{
		"user_delete_action": "'other'", "group_delete_action": "'other'", "exclude_users_service_account": "2", "client_id": "'x'",
	} {
		if !isRefused(store.KindWorkspaceDirectory, column, value) {
			t.Errorf("%s can be %s", column, value)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
