package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed load.lua
var loadScript []byte

// result is wrk's summary of a run, and what the run cost the server.
type result struct {
	Requests     float64
	Microseconds float64
	P50          float64
	P95          float64
	P99          float64
	Refused      int
	Failed       int
	CPUSeconds   float64
	PeakMiB      float64
	StartSeconds float64
}

// perSecond returns the creates per second that got 201.
func (r result) perSecond() float64 { return (r.Requests - float64(r.Refused)) / r.Microseconds * 1e6 }

// cpuPerThousand returns the server's CPU seconds per 1,000 creates.
func (r result) cpuPerThousand() float64 { return r.CPUSeconds / r.Requests * 1000 }

// cpuPerCreate returns the server's CPU microseconds per create.
func (r result) cpuPerCreate() float64 { return r.CPUSeconds / r.Requests * 1e6 }

// load sends creates over connections that each wait for a response before the next request.
func load(ctx context.Context, target *subject, connections int, duration time.Duration) (result, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return result{}, fmt.Errorf("create directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Join(dir, "load.lua")
	if err := os.WriteFile(script, loadScript, 0o600); err != nil {
		return result{}, fmt.Errorf("write script: %w", err)
	}
	before, err := target.cpuSeconds()
	if err != nil {
		return result{}, err
	}
	wrk := exec.CommandContext(ctx, "wrk", "--threads", "1", "--connections", strconv.Itoa(connections),
		"--duration", duration.String(), "--timeout", "10s", "--script", script, target.url)
	wrk.Env = append(os.Environ(), "BENCH_TOKEN="+target.token)
	output, err := wrk.Output()
	if err != nil {
		return result{}, fmt.Errorf("run wrk (from Debian's package wrk): %w", err)
	}
	var measured result
	if err := json.Unmarshal(lastLine(output), &measured); err != nil {
		return result{}, fmt.Errorf("read the result of wrk: %w", err)
	}
	if measured.Refused > 0 || measured.Failed > 0 {
		return result{}, fmt.Errorf("%d creates were refused and %d failed", measured.Refused, measured.Failed)
	}
	after, err := target.cpuSeconds()
	if err != nil {
		return result{}, err
	}
	measured.CPUSeconds = after - before
	measured.PeakMiB, err = target.peakMiB()
	return measured, err
}

func lastLine(output []byte) []byte {
	end := len(output)
	for end > 0 && output[end-1] == '\n' {
		end--
	}
	start := end
	for start > 0 && output[start-1] != '\n' {
		start--
	}
	return output[start:end]
}
