package command

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

type versionCommand struct{}

// unknown replaces what the build did not record.
const unknown = "unknown"

// Run prints the versions of the program, Go, SQLite and the schemas.
func (versionCommand) Run(out *console.Output) error {
	version, commit := builtFrom()
	schema, err := sqlite.SchemaVersion()
	if err != nil {
		return err
	}
	return out.Line(fmt.Sprintf("providerd %s %s %s/%s\ncommit %s\nSQLite %s\nschema version %d, over PostgreSQL %d",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH, commit,
		sqlite.LibraryVersion(), schema, postgres.SchemaVersion()))
}

// builtFrom returns the version of the program, and the commit that it was built from.
func builtFrom() (version, commit string) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown, unknown
	}
	return build.Main.Version, commitOf(build)
}

// commitOf returns the commit, if the program was built in a clone of its repository.
func commitOf(build *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range build.Settings {
		settings[setting.Key] = setting.Value
	}
	commit := settings["vcs.revision"]
	switch {
	case commit == "":
		return unknown
	case settings["vcs.modified"] == "true":
		return commit + " with changes"
	default:
		return commit + " of " + settings["vcs.time"]
	}
}

// versionFlag is the flag that does what the version command does.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	out := console.NewOutput(os.Stdout)
	if err := errors.Join(versionCommand{}.Run(out), out.Flush()); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}
