package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"runtime/debug"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"example.com/providerd/store/sqlite"
)

// printBill prints the bill of materials of a binary, in CycloneDX 1.5.
func printBill(to io.Writer, binary string) error {
	build, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read build info: %w", err)
	}
	encoder := cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(billOf(build), cyclonedx.SpecVersion1_5); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}

// billOf returns a bill without a time or a serial number, so that equal binaries have equal bills.
func billOf(build *debug.BuildInfo) *cyclonedx.BOM {
	program := module(build.Main)
	program.Type = cyclonedx.ComponentTypeApplication
	components := []cyclonedx.Component{
		library("std", build.GoVersion, "pkg:golang/std"),
		// SQLite's source is part of the driver's module, which this program uses, too.
		library("sqlite", sqlite.LibraryVersion(), "pkg:generic/sqlite"),
	}
	for _, dependency := range build.Deps {
		components = append(components, module(*dependency))
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &program}
	bill.Components = &components
	return bill
}

func module(from debug.Module) cyclonedx.Component {
	if from.Replace != nil {
		from = *from.Replace
	}
	return library(from.Path, from.Version, "pkg:golang/"+from.Path)
}

func library(name, version, url string) cyclonedx.Component {
	url += "@" + version
	return cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, BOMRef: url, PackageURL: url,
	}
}
