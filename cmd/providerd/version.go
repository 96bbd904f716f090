package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

type versionCommand struct{}

// Run prints the version of the program and of the Go that built it.
func (versionCommand) Run(out *output) error {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
	}
	return out.line(fmt.Sprintf("providerd %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
}

// versionFlag does what the command version does.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	out := newOutput(os.Stdout)
	if err := errors.Join(versionCommand{}.Run(out), out.flush()); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}
