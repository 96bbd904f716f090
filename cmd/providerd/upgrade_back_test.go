//go:build upgrade

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	folder := t.TempDir()
	migration, overlay, program := filepath.Join(folder, "later.sql"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "newer")
	added, err := filepath.Abs(fmt.Sprintf("../../store/sqlite/migrations/%04d_later.sql", level+1))
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{added: migration}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		migration: "-- +goose Up\nCREATE TABLE later (pk INTEGER NOT NULL PRIMARY KEY);\n", overlay: string(replace),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a newer program: %v: %s", err, output)
	}
	return program
}

// TestUpgradeOverSQLiteAndBack lets a newer program serve a database, and this one go back to the backup of before.
func TestUpgradeOverSQLiteAndBack(t *testing.T) {
	newer, folder, client := buildNewer(t), t.TempDir(), contracttest.Client(t)
	createWith := func(program string) {
		t.Helper()
		server, err := startProgram(t.Context(), program, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		createOverHTTP(t, client, server, folder)
		if err := server.stop(); err != nil {
			t.Errorf("%v: %s", err, server.stderr)
		}
	}
	createWith(os.Args[0])
	operate(t, folder, "backup", "before.db")
	createWith(newer)
	_, err := startProgram(t.Context(), os.Args[0], folder, nil)
	if err == nil || !strings.Contains(err.Error(), "use a newer providerd") {
		t.Errorf("this program starts over a newer database with %v", err)
	}
	operate(t, folder, "restore", "before.db", "--replace")
	if stored := storedPKs(t, folder); !slices.Equal(stored, []int32{1}) {
		t.Errorf("%v are stored, want what was there before the upgrade", stored)
	}
	createWith(os.Args[0])
}
