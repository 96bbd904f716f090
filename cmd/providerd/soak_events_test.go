//go:build slow

package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/server/contracttest"
)

// soakEvent is something that an operator does, or that befalls a server, after a share of the time.
type soakEvent struct {
	share float64
	label string
	run   func(t *testing.T, s *soak)
}

func soakEvents() []soakEvent {
	return []soakEvent{
		{0.12, "key rotate", func(t *testing.T, s *soak) {
			t.Helper()
			s.operate(t, "key", "rotate")
		}},
		{0.20, "key reseal", func(t *testing.T, s *soak) {
			t.Helper()
			s.operate(t, "key", "reseal")
		}},
		{0.28, "backup", backUpSoak},
		{0.36, "new certificate", changeCertificate},
		{0.44, "log not read", stallLog},
		{0.60, "restart", restartSoak},
		{0.85, "log reader gone", leaveLog},
	}
}

func backUpSoak(t *testing.T, s *soak) {
	t.Helper()
	s.backup.creates = s.load.journal.acknowledged()
	begun := time.Now()
	s.operate(t, "backup", "backup.db")
	s.backup.took = time.Since(begun)
	var err error
	if s.backup.bytes, err = sizeOf(filepath.Join(s.server.folder, "backup.db")); err != nil {
		t.Error(err)
	}
}

// changeCertificate renames the files of the second certificate into place. A connection that is open keeps the first
// one; new ones, and with them the callers, get the second.
func changeCertificate(t *testing.T, s *soak) {
	t.Helper()
	folder := s.server.folder
	connections := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust(t, folder)}}
	defer connections.CloseIdleConnections()
	open := contracttest.ClientOver(t, connections)
	if serial := certificateOf(t, open, s.server); serial != 1 {
		t.Errorf("at first, certificate %d is served", serial)
	}
	for _, name := range []string{"cert.pem", "key.pem"} {
		if err := os.Rename(filepath.Join(folder, nextCertificate, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if serial := served(t, s.server.address); serial != 2 {
		t.Errorf("a new connection has certificate %d", serial)
	}
	if serial := certificateOf(t, open, s.server); serial != 1 {
		t.Errorf("the connection that was open has certificate %d", serial)
	}
	waitUntil(t, "callers meet the new certificate", func() bool { return s.load.journal.hasMet(2) })
}

// certificateOf returns the serial number of the certificate of the connection that a client uses.
func certificateOf(t *testing.T, from *http.Client, server *operated) int64 {
	t.Helper()
	response, err := from.Get(server.process.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("status is %d, %v", response.StatusCode, err)
	}
	return response.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// droppedLines are those of a log that are dropped before somebody reads it again.
const droppedLines = 100

// stallLog lets nobody read the log until lines of it are dropped.
func stallLog(t *testing.T, s *soak) {
	t.Helper()
	s.server.log.pause()
	defer s.server.log.resume()
	waitUntil(t, "lines of the log are dropped", func() bool { return s.watch.dropped() >= droppedLines })
}

// leaveLog leaves the pipe without a reader for good.
func leaveLog(t *testing.T, s *soak) {
	t.Helper()
	if err := s.server.log.leave(); err != nil {
		t.Error(err)
	}
	waitUntil(t, "lines of the log are dropped", func() bool { return s.watch.dropped() >= droppedLines })
}

// restartSoak ends the server and starts it again. Each request that was answered until then is in the log or counted
// there.
func restartSoak(t *testing.T, s *soak) {
	t.Helper()
	s.server.stop(t)
	var answered int
	s.ended, _, answered = s.load.journal.soFar()
	s.log = s.server.log.count
	if err := s.server.log.err; err != nil || s.log.requests+s.log.dropped < answered || s.log.notes == 0 {
		t.Errorf("%d requests were answered, and the log has %+v, %v", answered, s.log, err)
	}
	s.server.start(t)
	waitUntil(t, "the watch sees the new process", func() bool { return s.watch.dropped() == 0 })
}
