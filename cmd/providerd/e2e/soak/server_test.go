//go:build slow

package soak_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// operated is providerd as a service manager runs it: the program as shipped, over HTTPS, with its log in a pipe, on
// addresses that it has again after a restart.
type operated struct {
	program, folder string
	// address and ops are where callers and operators reach it.
	address, ops string
	manager      *net.UnixConn
	process      *providerdtest.Server
	log          *pipedLog
}

// startOperated starts the program in a folder of its own, where cert.pem and key.pem are its certificate.
func startOperated(t *testing.T, program string) *operated {
	t.Helper()
	folder := t.TempDir()
	providerdtest.WriteCertificate(t, folder, 1)
	manager := providerdtest.ListenAsManager(t, filepath.Join(folder, "notify"))
	// No connection that this machine makes by itself comes from 127.0.0.2, so that none takes the address in a restart.
	o := &operated{program: program, folder: folder, address: "127.0.0.2:0", manager: manager}
	// A port that the server takes for operators would be named in the log alone, which others read.
	ops, err := net.Listen("tcp", o.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := ops.Close(); err != nil {
		t.Fatal(err)
	}
	o.ops = ops.Addr().String()
	o.start(t)
	return o
}

func (o *operated) start(t *testing.T) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.log = readLog(reader)
	command := providerdtest.Command(t.Context(), o.folder, "serve")
	command.Path, command.Stderr = o.program, writer
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(o.folder, "notify"), "PROVIDERD_DRAIN_DELAY=2s",
		"PROVIDERD_LISTEN="+o.address, "PROVIDERD_OPS_LISTEN="+o.ops,
		"PROVIDERD_TLS_CERT=cert.pem", "PROVIDERD_TLS_KEY=key.pem")
	o.process, err = providerdtest.StartCommand(command)
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	o.address = strings.TrimPrefix(o.process.URL, "https://")
	providerdtest.ExpectState(t, o.manager, "READY=1\nSTATUS=serving on "+o.process.URL)
}

// stop ends the server as a service manager does, and waits for the end of its log.
func (o *operated) stop(t *testing.T) {
	t.Helper()
	if err := o.process.Stop(); err != nil {
		t.Error(err)
	}
	providerdtest.ExpectState(t, o.manager, providerdtest.StateDraining(2*time.Second))
	providerdtest.ExpectState(t, o.manager, providerdtest.StateEnding)
	<-o.log.ended
}

// pipedLog is the log of a server, read from a pipe.
type pipedLog struct {
	pipe *os.File
	// reading is held by whoever reads, or keeps others from it.
	reading sync.Mutex
	ended   chan struct{}
	// count and err are for after the end.
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

// Read reads from the pipe, unless that is stopped.
func (l *pipedLog) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	return l.pipe.Read(p)
}
