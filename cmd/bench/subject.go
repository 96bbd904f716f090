package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
)

// The servers to measure.
const (
	echoAlone      = "echo"
	withValidation = "validation"
	whole          = "providerd"
)

const (
	program  = "bin/providerd"
	freePort = "127.0.0.1:0"
)

// subject is a server under measurement, in its own process.
type subject struct {
	command *exec.Cmd
	url     string
	token   string
	// startTime is how long the server took to listen.
	startTime time.Duration
}

// start starts a server with its data in dir.
func start(ctx context.Context, kind, dir string) (*subject, error) {
	if kind != whole {
		return launch(exec.CommandContext(ctx, os.Args[0], "-serve", kind), filepath.Join(dir, kind+".log"))
	}
	return startProgram(ctx, dir, nil, nil)
}

// startProgram starts providerd with its data in dir, and with no settings except the flags and variables.
func startProgram(ctx context.Context, dir string, flags, variables []string) (*subject, error) {
	database := "sqlite:" + filepath.Join(dir, databaseFile)
	command := exec.CommandContext(ctx, program,
		slices.Concat([]string{"serve", "--listen", freePort, "--database", database}, flags)...)
	command.Env = slices.Concat(slices.DeleteFunc(os.Environ(), isSetting), variables)
	started, err := launch(command, filepath.Join(dir, whole+".log"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(dir, "initial-token"))
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	started.token = strings.TrimSpace(string(token))
	return started, nil
}

// isSetting reports whether an environment variable is a setting of providerd.
func isSetting(variable string) bool {
	return strings.HasPrefix(variable, "PROVIDERD_") || strings.HasPrefix(variable, "OTEL_")
}

// launch starts a server with its standard error in a file, and waits until it prints its URL.
func launch(command *exec.Cmd, logPath string) (*subject, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	started := time.Now()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, errors.Join(err, command.Wait()))
	}
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return &subject{command: command, url: url, startTime: time.Since(started)}, nil
}

// stop stops the server and waits for it.
func (s *subject) stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop server: %w", err)
	}
	var exit *exec.ExitError
	if err := s.command.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("stop server: %w", err)
	}
	return nil
}

// cpuSeconds returns the CPU time that the server has used.
func (s *subject) cpuSeconds() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// utime and stime, in ticks, are the 12th and 13th fields after the name in parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const ticksPerSecond = 100
	var ticks float64
	for _, field := range fields[11:13] {
		count, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		ticks += count
	}
	return ticks / ticksPerSecond, nil
}

// peakMiB returns the server's peak resident memory.
func (s *subject) peakMiB() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return kib / 1024, nil
}

// serveYardstick serves a yardstick.
func serveYardstick(ctx context.Context, kind string) error {
	contract, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		return fmt.Errorf("read contract: %w", err)
	}
	handler := newEchoYardstick(contract)
	if kind == withValidation {
		if handler, err = newValidationYardstick(contract); err != nil {
			return err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Println("listening on http://" + listener.Addr().String())
	yardstick := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	if err := yardstick.Serve(listener); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
