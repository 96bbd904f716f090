//go:build slow

package soak_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// service is the program as shipped, over HTTPS, with its log in a pipe, and with the same addresses after a restart.
type service struct {
	program, dir string
	// address and ops are the addresses of the API and of the ops listener.
	address, ops string
	process      *providerdtest.Server
	log          *pipedLog
}

// startService starts the program in a new directory, with its certificate in cert.pem and key.pem.
func startService(t *testing.T, program string) *service {
	t.Helper()
	dir := t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	// Outgoing connections do not use 127.0.0.2, so none takes the port during a restart.
	s := &service{program: program, dir: dir, address: "127.0.0.2:0"}
	// Port 0 would be resolved only in the log, which the test does not parse.
	ops, err := net.Listen("tcp", s.address)
	processtest.Must(t, err)
	processtest.Must(t, ops.Close())
	s.ops = ops.Addr().String()
	s.start(t)
	return s
}

func (s *service) start(t *testing.T) {
	t.Helper()
	reader, writer, err := os.Pipe()
	processtest.Must(t, err)
	s.log = readLog(reader)
	command := providerdtest.Command(t.Context(), s.dir, "PROVIDERD_DRAIN_DELAY=2s",
		"PROVIDERD_LISTEN="+s.address, "PROVIDERD_OPS_LISTEN="+s.ops,
		"PROVIDERD_TLS_CERT=cert.pem", "PROVIDERD_TLS_KEY=key.pem", "serve")
	command.Path, command.Stderr = s.program, writer
	s.process, err = providerdtest.Start(command)
	processtest.Must(t, errors.Join(err, writer.Close()))
	s.address = strings.TrimPrefix(s.process.URL, "https://")
}

// stop stops the server, and waits for the end of its log.
func (s *service) stop(t *testing.T) {
	t.Helper()
	s.process.Stop(t)
	<-s.log.ended
}

// pipedLog is the log of a server, read from a pipe.
type pipedLog struct {
	pipe *os.File
	// reading is held while reading, or to block the reader.
	reading sync.Mutex
	ended   chan struct{}
	// count and err are valid after ended is closed.
	count providerdtest.LogCount
	err   error
}

func readLog(pipe *os.File) *pipedLog {
	log := &pipedLog{pipe: pipe, ended: make(chan struct{})}
	go func() {
		defer close(log.ended)
		log.err = log.count.Read(log)
		_ = pipe.Close()
	}()
	return log
}

// Read reads from the pipe, unless reading is blocked.
func (l *pipedLog) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	return l.pipe.Read(p)
}
