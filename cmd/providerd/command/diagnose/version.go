package diagnose

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// Version has the flags of "providerd version".
type Version struct {
	Output string `short:"o" default:"text" enum:"text,json" help:"Output format: ${enum} (default ${default})."`
}

type versions struct {
	Version        string `json:"version"`
	Commit         string `json:"commit"`
	Go             string `json:"go"`
	Platform       string `json:"platform"`
	SQLite         string `json:"sqlite"`
	SQLiteSchema   int64  `json:"sqlite_schema"`
	PostgresSchema int64  `json:"postgres_schema"`
}

// Run prints the versions of the program, Go, SQLite and the schemas.
func (c Version) Run(out *console.Output) error {
	version, commit := BuiltFrom()
	sqliteSchema, err := sqlite.SchemaVersion()
	postgresSchema, postgresErr := postgres.SchemaVersion()
	if err := errors.Join(err, postgresErr); err != nil {
		return err
	}
	all := versions{
		version, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, sqlite.LibraryVersion(), sqliteSchema,
		postgresSchema,
	}
	if c.Output == console.FormatJSON {
		return out.JSON(all, "")
	}
	return out.Line(fmt.Sprintf("providerd %s %s %s\ncommit %s\nSQLite %s\nschema version %d (SQLite), %d (PostgreSQL)",
		all.Version, all.Go, all.Platform, all.Commit, all.SQLite, all.SQLiteSchema, all.PostgresSchema))
}

// BuiltFrom returns the version of the program, which ends in +dirty if a file was changed, and its commit.
func BuiltFrom() (version, commit string) {
	version, commit = "unknown", "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	return version, commit
}
