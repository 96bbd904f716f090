package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"example.com/providerd/cmd/bench/figures"
)

// measureSteps runs the Go benchmarks of a create and of its steps, and writes their time and allocations.
func measureSteps(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Create|Steps)$", "-benchmem",
		"-benchtime", "3s", "./server/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("run the benchmarks: %w: %s", err, output)
	}
	// A line is like "BenchmarkSteps/bind-2   115310   10542 ns/op   4096 B/op   22 allocs/op".
	lines := regexp.MustCompile(`(?m)^Benchmark(\w+)/(\w+)\S*\s.*?(\d+)\S* ns/op.*?(\d+) allocs/op$`)
	var text strings.Builder
	text.WriteString("|benchmark|step|ns|allocations|\n|-|-|-|-|\n")
	for _, line := range lines.FindAllStringSubmatch(string(output), -1) {
		fmt.Fprintf(&text, "|%s|%s|%s|%s|\n", line[1], strings.ReplaceAll(line[2], "_", " "), line[3], line[4])
	}
	fmt.Print(&text)
	return figures.Put("cmd/bench/README.md", "figures: make bench BENCH=-steps writes them", text.String())
}
