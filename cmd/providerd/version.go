package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
