//go:build slow

package soak_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	// defaultSoak is the duration of an ordinary run, in seconds. The proof "soak" runs longer.
	defaultSoak = 16
	// wholeSoak is the minimum duration of a run that writes the figures.
	wholeSoak = 2 * time.Minute
	// soakSamples is the number of samples of a whole run.
	soakSamples = 300
	// nextCertificate is the directory of the second certificate.
	nextCertificate = "next"
)

// TestSoak runs a server under steady load through operations and faults. No create may fail, each must be stored once,
// and no resource of a process may grow with the creates.
func TestSoak(t *testing.T) {
	t.Parallel()
	length := time.Duration(processtest.ProofSize(t, "soak", defaultSoak)) * time.Second
	s := startSoak(t, providerdtest.Build(t), max(length/soakSamples, 100*time.Millisecond))
	for _, event := range soakEvents() {
		<-time.After(time.Duration(event.share*float64(length)) - s.now())
		event.run(t, s)
	}
	<-time.After(length - s.now())
	processtest.WaitUntil(t, "the second process has enough samples", func() bool {
		sampled := s.watch.processes()
		return len(sampled) > 1 && len(sampled[1]) >= 2*minSamples
	})
	s.end(t)
	s.account(t)
	s.report(t, length >= wholeSoak)
}

// soak is a server under steady load, and its figures.
type soak struct {
	server  *service
	journal *soakJournal
	watch   *soakWatch
	// end stops the load, the watch and the server.
	end  func(t *testing.T)
	idle soakSample
	// log counts the log of the first process.
	log    providerdtest.LogCount
	backup struct {
		creates map[string]providerdtest.Record
		took    time.Duration
	}
	processes [][]soakSample
	// follower follows the events, of which none may be missing or differ in the end.
	follower *providerdtest.Follower
}

// startSoak starts a server, the load and the watch, which takes a sample before the load.
func startSoak(t *testing.T, program string, interval time.Duration) *soak {
	t.Helper()
	server := startService(t, program)
	next := filepath.Join(server.dir, nextCertificate)
	processtest.Must(t, os.Mkdir(next, 0o700))
	providerdtest.WriteCertificate(t, next, 2)
	journal := &soakJournal{Journal: providerdtest.NewJournal()}
	s := &soak{server: server, journal: journal, watch: newSoakWatch(server, journal)}
	var err error
	if s.idle, err = s.watch.sample(); err != nil {
		t.Fatal(err)
	}
	s.follower = providerdtest.StartFollower(t, server.dir, func(ctx context.Context, arguments ...string) *exec.Cmd {
		command := providerdtest.Command(ctx, server.dir, arguments...)
		command.Path = program
		return command
	})
	creates, watch := startSoakLoad(t, server, journal, server.dir, next), s.watch.start(interval)
	s.end = func(t *testing.T) {
		t.Helper()
		creates.Stop()
		watch.Stop()
		s.processes = s.watch.processes()
		server.stop(t)
	}
	return s
}

func (s *soak) now() time.Duration { return time.Since(s.journal.Started) }

// operate runs a command of the program beside the server, and logs its output.
func (s *soak) operate(t *testing.T, arguments ...string) {
	t.Helper()
	command := providerdtest.Command(t.Context(), s.server.dir, arguments...)
	command.Path = s.server.program
	t.Log(processtest.Run(t, command))
}

// account compares the stored records with the acknowledged ones, and the backup with the database.
func (s *soak) account(t *testing.T) {
	t.Helper()
	s.follower.Verify(t)
	s.journal.Compare(t, providerdtest.Stored(t, s.server.dir))
	s.operate(t, "doctor")
	providerdtest.CheckBackup(t, s.server.dir, s.backup.creates)
}
