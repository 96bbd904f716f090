//go:build slow

// Package soak_test loads a server steadily through restarts, rotations and faults, and checks that no resource leaks.
// Command bench measures speed.
package soak_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// wholeSoak is the minimum duration of a run that writes the figures.
	wholeSoak = 2 * time.Minute
	// soakSamples is the number of samples of a whole run.
	soakSamples = 300
	// nextCertificate is the directory of the second certificate.
	nextCertificate = "next"
	// leakVariable is set for a program that leaks.
	leakVariable = "INJECTED_LEAK"
)

// TestMain also runs the test binary as providerd, which leaks if a variable is set.
func TestMain(m *testing.M) {
	providerdtest.MainAround(m, func(program func() int) int {
		if os.Getenv(leakVariable) != "" {
			go leak()
		}
		return program()
	})
}

// leak leaks 100 KiB, a goroutine and a descriptor as often as the load sends 100 creates.
func leak() {
	never := make(chan struct{})
	for range time.Tick(time.Second / 3) {
		memory := bytes.Repeat([]byte{1}, 100<<10)
		file, _ := os.Open(os.DevNull)
		go func() {
			<-never
			runtime.KeepAlive(memory)
			runtime.KeepAlive(file)
		}()
	}
}

// TestSoak runs a server under load through operations and faults: each create is stored once, and no resource grows.
func TestSoak(t *testing.T) {
	t.Parallel()
	length := time.Duration(processtest.ProofSize(t, "soak", 16)) * time.Second
	s := startSoak(t, providerdtest.Build(t), max(length/soakSamples, 100*time.Millisecond))
	await := func(share float64) { <-time.After(time.Duration(share*float64(length)) - time.Since(s.Started)) }
	await(0.12)
	s.operate(t, "key", "rotate")
	await(0.20)
	s.operate(t, "key", "reseal")
	await(0.28)
	s.backedUp = s.Acknowledged()
	started := time.Now()
	s.operate(t, "backup", "backup.db")
	s.backupTook = time.Since(started)
	await(0.36)
	for _, name := range []string{"cert.pem", "key.pem"} {
		processtest.Must(t, os.Rename(filepath.Join(s.dir, nextCertificate, name), filepath.Join(s.dir, name)))
	}
	processtest.WaitUntil(t, "callers get the new certificate", func() bool { return s.certificate.Load() == 2 })
	await(0.44)
	func() {
		s.log.reading.Lock()
		defer s.log.reading.Unlock()
		s.awaitDroppedLines(t)
	}()
	await(0.60)
	s.restart(t)
	await(0.85)
	processtest.Must(t, s.log.pipe.Close())
	s.awaitDroppedLines(t)
	await(1)
	processtest.WaitUntil(t, "the second process has enough samples", func() bool {
		sampled := s.processes()
		return len(sampled) > 1 && len(sampled[1]) >= 2*minSamples
	})
	s.end(t)
	s.follower.Verify(t)
	s.Compare(t, providerdtest.Stored(t, s.dir))
	s.operate(t, "doctor")
	providerdtest.CheckBackup(t, s.dir, s.backedUp)
	s.report(t, length >= wholeSoak)
}

// soak is the program as shipped, over HTTPS, with its log in a pipe, under steady load, and its figures.
type soak struct {
	// Journal has the creates.
	*providerdtest.Journal
	// requests counts all requests, and certificate is the serial number of the certificate that a caller got last.
	requests, certificate atomic.Int64

	program, dir string
	// address and ops are the addresses of the API and of the ops listener, also after a restart.
	address, ops string
	process      *providerdtest.Server
	log          *pipedLog

	mutex   sync.Mutex
	samples []soakSample
	// idle is the sample before the load, and firstLog counts the log of the first process.
	idle       soakSample
	firstLog   providerdtest.LogCount
	backedUp   map[string]providerdtest.Record
	backupTook time.Duration
	// follower follows the events, of which none may be missing or differ in the end.
	follower *providerdtest.Follower
	// end stops the load, the watch and the server.
	end func(t *testing.T)
}

// startSoak starts a server in a new directory, the load and the watch, which takes a sample before the load.
func startSoak(t *testing.T, program string, interval time.Duration) *soak {
	t.Helper()
	s := &soak{
		program: program, dir: t.TempDir(),
		address: processtest.Local(processtest.FreePort(t)), ops: processtest.Local(processtest.FreePort(t)),
	}
	next := filepath.Join(s.dir, nextCertificate)
	processtest.Must(t, os.Mkdir(next, 0o700))
	providerdtest.WriteCertificate(t, s.dir, 1)
	providerdtest.WriteCertificate(t, next, 2)
	s.start(t)
	s.Journal = providerdtest.NewJournal()
	var err error
	s.idle, err = s.sample()
	processtest.Must(t, err)
	s.follower = providerdtest.StartFollower(t, s.dir, s.command)
	creates, watch := s.load(t, providerdtest.CertPool(t, s.dir, next)), s.watch(interval)
	s.end = func(t *testing.T) {
		t.Helper()
		creates.Stop()
		watch.Stop()
		s.stop(t)
	}
	return s
}

func (s *soak) start(t *testing.T) {
	t.Helper()
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	log := &pipedLog{pipe: reader, ended: make(chan struct{})}
	go func() {
		defer close(log.ended)
		log.err = log.count.Read(log)
		_ = reader.Close()
	}()
	s.log = log
	command := s.command(t.Context(), "PROVIDERD_DRAIN_DELAY=2s", "PROVIDERD_LISTEN="+s.address, "PROVIDERD_OPS_LISTEN="+s.ops,
		"PROVIDERD_TLS_CERT=cert.pem", "PROVIDERD_TLS_KEY=key.pem", "serve")
	command.Stderr = writer
	s.process, err = providerdtest.Start(command)
	processtest.Must(t, err, writer.Close())
}

func (s *soak) stop(t *testing.T) {
	t.Helper()
	s.process.Stop(t)
	<-s.log.ended
}

// restart restarts the server. The log must contain each request until then, or count it as dropped.
func (s *soak) restart(t *testing.T) {
	s.stop(t)
	completed := int(s.requests.Load())
	s.firstLog = s.log.count
	processtest.Expect(t, s.log.err == nil && s.firstLog.Requests+s.firstLog.Dropped >= completed && s.firstLog.Notes != 0,
		"%d requests were completed, and the log has %+v, %v", completed, s.firstLog, s.log.err)
	s.start(t)
	processtest.WaitUntil(t, "the watch samples the new process", func() bool { return s.dropped() == 0 })
}

// command returns a command of the program beside the server.
func (s *soak) command(ctx context.Context, words ...string) *exec.Cmd {
	command := providerdtest.Command(ctx, s.dir, words...)
	command.Path = s.program
	return command
}

func (s *soak) operate(t *testing.T, arguments ...string) {
	t.Helper()
	t.Log(processtest.Run(t, s.command(t.Context(), arguments...)))
}

func (s *soak) awaitDroppedLines(t *testing.T) {
	t.Helper()
	processtest.WaitUntil(t, "log lines are dropped", func() bool { return s.dropped() >= 100 })
}

type pipedLog struct {
	pipe *os.File
	// reading is held while reading, or to block the reader.
	reading sync.Mutex
	ended   chan struct{}
	// count and err are valid after ended is closed.
	count providerdtest.LogCount
	err   error
}

// Read reads from the pipe, unless reading is blocked.
func (l *pipedLog) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	return l.pipe.Read(p)
}
