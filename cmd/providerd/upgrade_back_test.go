//go:build upgrade

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/sqlite"
)

// buildNewer builds a program whose schema over SQLite has one level more than that of this one.
func buildNewer(t *testing.T) string {
	t.Helper()
	level, err := sqlite.Level()
	if err != nil {
		t.Fatal(err)
	}
	return buildWith(t, fmt.Sprintf("../../store/sqlite/migrations/%04d_later.sql", level+1),
		"-- +goose Up\nCREATE TABLE later (pk INTEGER NOT NULL PRIMARY KEY);\n")
}

// TestUpgradeOverSQLiteAndBack lets a newer program serve a database, and this one go back to the backup of before.
func TestUpgradeOverSQLiteAndBack(t *testing.T) {
	newer, folder, client := buildNewer(t), t.TempDir(), contracttest.Client(t)
	createWith(t, client, os.Args[0], folder)
	operate(t, folder, "backup", "before.db")
	createWith(t, client, newer, folder)
	_, err := startProgram(t.Context(), os.Args[0], folder, nil)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("this program starts over a newer database with %v", err)
	}
	operate(t, folder, "restore", "before.db", "--replace")
	if stored := storedPKs(t, folder); !slices.Equal(stored, []int32{1}) {
		t.Errorf("%v are stored, want what was there before the upgrade", stored)
	}
	createWith(t, client, os.Args[0], folder)
}
