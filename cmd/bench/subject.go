package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/prometheus/procfs"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// subject is a server under measurement, in a process of its own.
type subject struct {
	*providerdtest.Server
	// variables are what load.lua reads.
	variables []string
	// stops are called before the server is killed.
	stops []func() error
}

func startYardstick(ctx context.Context, dir string) (*subject, error) {
	return launch(exec.CommandContext(ctx, "bin/yardstick"), dir)
}

// launch starts a server with its log in a file.
func launch(command *exec.Cmd, dir string) (*subject, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	command.Stderr = log
	server, err := providerdtest.Start(command)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	return &subject{Server: server}, nil
}

// database returns the URL of an empty database, which may have its files in dir.
type database func(dir string) (url string)

func sqliteIn(dir string) (url string) { return "sqlite:" + filepath.Join(dir, "providerd.db") }

// startProviderd starts providerd with no settings except for those of the database and the telemetry. The load reads
// the variables.
func startProviderd(ctx context.Context, dir string, over database, variables []string, with ...telemetry) (*subject, error) {
	environment := append(slices.DeleteFunc(os.Environ(), regexp.MustCompile(`^(PROVIDERD|OTEL)_`).MatchString),
		"PROVIDERD_DATABASE="+over(dir),
		"PROVIDERD_KEYSET="+filepath.Join(dir, "keyset.json"), "PROVIDERD_LISTEN=127.0.0.1:0")
	var stops []func() error
	for _, observe := range with {
		setting, stop := observe(ctx)
		environment, stops = append(environment, setting), append(stops, stop)
	}
	command := func(arguments ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, "bin/providerd", arguments...)
		command.Env = environment
		return command
	}
	if output, err := command("key", "create").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("create a master key: %w: %s", err, output)
	}
	started, err := launch(command("serve"), dir)
	if err != nil {
		return nil, err
	}
	started.stops = stops
	token, err := command("token", "create", "--name", "bench", "--allow", "providers_oauth2_create").Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a token: %w", err), started.stop())
	}
	started.variables = append(variables, "BENCH_TOKEN="+string(bytes.TrimSpace(token)))
	return started, nil
}

// stop kills the server, once all has been observed.
func (s *subject) stop() (err error) {
	for _, stop := range s.stops {
		err = errors.Join(err, stop())
	}
	return errors.Join(err, s.Child.Kill())
}

// usage returns the CPU time that the server has used, and its peak resident memory.
func (s *subject) usage() (cpuSeconds, peakMiB float64, err error) {
	process, err := procfs.NewProc(s.Command.Process.Pid)
	if err != nil {
		return 0, 0, fmt.Errorf("find the server: %w", err)
	}
	stat, statErr := process.Stat()
	status, statusErr := process.NewStatus()
	return stat.CPUTime(), float64(status.VmHWM) / (1 << 20), errors.Join(statErr, statusErr)
}
