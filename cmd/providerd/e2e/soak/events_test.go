//go:build slow

package soak_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// soakEvent is an operation or a fault after a share of the run.
type soakEvent struct {
	share float64
	run   func(t *testing.T, s *soak)
}

func soakEvents() []soakEvent {
	return []soakEvent{
		{0.12, func(t *testing.T, s *soak) {
			t.Helper()
			s.operate(t, "key", "rotate")
		}},
		{0.20, func(t *testing.T, s *soak) {
			t.Helper()
			s.operate(t, "key", "reseal")
		}},
		{0.28, backUpSoak},
		{0.36, changeCertificate},
		{0.44, func(t *testing.T, s *soak) {
			t.Helper()
			s.server.log.reading.Lock()
			defer s.server.log.reading.Unlock()
			s.awaitDroppedLines(t)
		}},
		{0.60, restartSoak},
		{0.85, func(t *testing.T, s *soak) {
			t.Helper()
			if err := s.server.log.pipe.Close(); err != nil {
				t.Error(err)
			}
			s.awaitDroppedLines(t)
		}},
	}
}

func backUpSoak(t *testing.T, s *soak) {
	t.Helper()
	s.backup.creates = s.journal.Acknowledged()
	started := time.Now()
	s.operate(t, "backup", "backup.db")
	s.backup.took = time.Since(started)
}

// changeCertificate renames the files of the second certificate into place.
func changeCertificate(t *testing.T, s *soak) {
	t.Helper()
	dir := s.server.dir
	for _, name := range []string{"cert.pem", "key.pem"} {
		processtest.Must(t, os.Rename(filepath.Join(dir, nextCertificate, name), filepath.Join(dir, name)))
	}
	processtest.WaitUntil(t, "callers get the new certificate", func() bool { return s.journal.certificate.Load() == 2 })
}

// awaitDroppedLines waits until some lines of the log are dropped.
func (s *soak) awaitDroppedLines(t *testing.T) {
	t.Helper()
	const lines = 100
	processtest.WaitUntil(t, "log lines are dropped", func() bool { return s.watch.dropped() >= lines })
}

// restartSoak restarts the server. The log must contain each request until then, or count it as dropped.
func restartSoak(t *testing.T, s *soak) {
	t.Helper()
	s.server.stop(t)
	_, completed := s.journal.soFar()
	s.log = s.server.log.count
	if err := s.server.log.err; err != nil || s.log.Requests+s.log.Dropped < completed || s.log.Notes == 0 {
		t.Errorf("%d requests were completed, and the log has %+v, %v", completed, s.log, err)
	}
	s.server.start(t)
	processtest.WaitUntil(t, "the watch samples the new process", func() bool { return s.watch.dropped() == 0 })
}
