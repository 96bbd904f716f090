package main

import (
	"bytes"
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
}

// perSecond returns the creates per second.
func (r result) perSecond() float64 { return r.Requests / r.Microseconds * 1e6 }

// cpuPerCreate returns the server's CPU microseconds per create.
func (r result) cpuPerCreate() float64 { return r.CPUSeconds / r.Requests * 1e6 }

// p50 returns the median of the latencies in milliseconds.
func (r result) p50() float64 { return r.P50 / 1000 }

// load sends requests over connections that each wait for a response before the next request. A status other than 2xx
// is an error.
func (s *subject) load(ctx context.Context, dir string, connections int, duration time.Duration) (measured result, err error) {
	script := filepath.Join(dir, "load.lua")
	if err := os.WriteFile(script, loadScript, 0o600); err != nil {
		return result{}, fmt.Errorf("write script: %w", err)
	}
	before, _, err := s.usage()
	if err != nil {
		return result{}, err
	}
	command := exec.CommandContext(ctx, "wrk", "--threads", "1", "--connections", strconv.Itoa(connections),
		"--duration", seconds(duration)+"s", "--timeout", "10s", "--script", script, s.URL)
	command.Env = append(os.Environ(), s.variables...)
	output, err := command.Output()
	if err != nil {
		return result{}, fmt.Errorf("run wrk (from Debian's package wrk): %w", err)
	}
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &measured); err != nil {
		return result{}, fmt.Errorf("read the result of wrk: %w", err)
	}
	if measured.Refused > 0 || measured.Failed > 0 {
		return result{}, fmt.Errorf("%d requests were refused and %d failed", measured.Refused, measured.Failed)
	}
	after, peak, err := s.usage()
	measured.CPUSeconds, measured.PeakMiB = after-before, peak
	return measured, err
}

// seconds returns a duration in whole seconds, at least one, which is what wrk and pgbench can wait for.
func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d.Seconds()))) }
