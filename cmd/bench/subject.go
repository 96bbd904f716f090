package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// program is the one that is measured.
const program = "bin/providerd"

// subject is a server under measurement, in a process of its own.
type subject struct {
	*exec.Cmd
	url, token string
	// stops are called before the server is stopped.
	stops []func() error
}

// startYardstick starts this program as the yardstick.
func startYardstick(ctx context.Context, dir string) (*subject, error) {
	started := &subject{Cmd: exec.CommandContext(ctx, os.Args[0], "-serve")}
	return started, started.launch(dir)
}

// database returns the URL of an empty database, which may have its files in dir.
type database func(ctx context.Context, dir string) (url string, err error)

func sqliteIn(_ context.Context, dir string) (url string, err error) {
	return "sqlite:" + filepath.Join(dir, "providerd.db"), nil
}

// startProviderd starts providerd with no settings except for those of the database and the telemetry.
func startProviderd(ctx context.Context, dir string, over database, with ...telemetry) (*subject, error) {
	url, err := over(ctx, dir)
	if err != nil {
		return nil, err
	}
	environment := append(slices.DeleteFunc(os.Environ(), isSetting),
		"PROVIDERD_DATABASE="+url, "PROVIDERD_KEYSET="+filepath.Join(dir, "keyset.json"), "PROVIDERD_LISTEN=127.0.0.1:0")
	var stops []func() error
	for _, observe := range with {
		settings, stop, err := observe(ctx)
		if err != nil {
			return nil, err
		}
		environment, stops = append(environment, settings...), append(stops, stop)
	}
	command := func(arguments ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, program, arguments...)
		command.Env = environment
		return command
	}
	if output, err := command("key", "create").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("create a master key: %w: %s", err, output)
	}
	started := &subject{Cmd: command("serve"), stops: stops}
	if err := started.launch(dir); err != nil {
		return nil, err
	}
	token, err := command("token", "create", "--name", "bench", "--allow", "providers_oauth2_create").Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a token: %w", err), started.stop())
	}
	started.token = string(bytes.TrimSpace(token))
	return started, nil
}

// isSetting reports whether an environment variable is a setting of providerd.
func isSetting(variable string) bool {
	return strings.HasPrefix(variable, "PROVIDERD_") || strings.HasPrefix(variable, "OTEL_")
}

// launch starts the server with its standard error in a file, and waits until it prints its URL.
func (s *subject) launch(dir string) error {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	s.Stderr = log
	output, err := s.StdoutPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Path, errors.Join(err, s.Wait()))
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return nil
}

// stop stops the server and waits for it.
func (s *subject) stop() (err error) {
	for _, stop := range s.stops {
		err = errors.Join(err, stop())
	}
	err = errors.Join(err, s.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	if waited := s.Wait(); !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	return err
}

// usage returns the CPU time that the server has used, and its peak resident memory.
func (s *subject) usage() (cpuSeconds, peakMiB float64, err error) {
	dir := fmt.Sprintf("/proc/%d/", s.Process.Pid)
	stat, statErr := os.ReadFile(dir + "stat")
	status, statusErr := os.ReadFile(dir + "status")
	if err := errors.Join(statErr, statusErr); err != nil {
		return 0, 0, fmt.Errorf("read the usage of the server: %w", err)
	}
	// utime and stime, in ticks, are the 12th and 13th fields after the name in parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	userTicks, userErr := strconv.ParseFloat(fields[11], 64)
	systemTicks, systemErr := strconv.ParseFloat(fields[12], 64)
	peakKiB, peakErr := strconv.ParseFloat(strings.Fields(peak)[0], 64)
	const ticksPerSecond = 100
	return (userTicks + systemTicks) / ticksPerSecond, peakKiB / 1024, errors.Join(userErr, systemErr, peakErr)
}
