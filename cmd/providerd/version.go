package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the version of the program and of the Go that built it.
func (versionCommand) Run() error {
	version := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
	}
	_, err := fmt.Printf("providerd %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("print version: %w", err)
	}
	return nil
}
