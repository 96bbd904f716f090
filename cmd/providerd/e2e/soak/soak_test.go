//go:build slow

package soak_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"

	"example.com/providerd/cmd/bench/figures"
)

const (
	// defaultSoak is for an ordinary run; make soak asks for more.
	defaultSoak = 12 * time.Second
	// wholeSoak is how long a run takes that writes the figures.
	wholeSoak = 2 * time.Minute
	// soakSamples are those of a whole run.
	soakSamples = 300
	// nextCertificate is the folder of the certificate that takes the place of the first.
	nextCertificate = "next"
)

// TestSoak lets a server under steady load meet what servers meet. No create may fail, each is stored once, and nothing
// that a process has grows with the creates.
func TestSoak(t *testing.T) {
	t.Parallel()
	length := defaultSoak
	if text := os.Getenv("PROVIDERD_SOAK_DURATION"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := startSoak(t, providerdtest.Build(t), max(length/soakSamples, 100*time.Millisecond))
	for _, event := range soakEvents() {
		<-time.After(time.Duration(event.share*float64(length)) - s.now())
		from := s.now()
		event.run(t, s)
		s.marks = append(s.marks, figures.Mark{Label: event.label, From: from, To: s.now()})
	}
	<-time.After(length - s.now())
	providerdtest.WaitUntil(t, "enough is seen of the second process", func() bool {
		seen := s.watch.processes()
		return len(seen) > 1 && len(seen[1]) >= 2*minSamples
	})
	s.end(t)
	s.account(t)
	s.report(t, length >= wholeSoak)
}

// soak is a server under steady load, and what was seen of it.
type soak struct {
	server  *operated
	journal *soakJournal
	watch   *soakWatch
	// end ends the load, the watch and the server.
	end   func(t *testing.T)
	idle  soakSample
	marks []figures.Mark
	// ended is when the first process had.
	ended time.Duration
	// log is what the log of the first process had.
	log    providerdtest.LogCount
	backup struct {
		creates map[string]providerdtest.Record
		took    time.Duration
	}
	processes [][]soakSample
}

// startSoak starts a server, load and the watch, which looks once before there is any load.
func startSoak(t *testing.T, program string, interval time.Duration) *soak {
	t.Helper()
	server := startOperated(t, program)
	next := filepath.Join(server.folder, nextCertificate)
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	providerdtest.WriteCertificate(t, next, 2)
	journal := &soakJournal{Journal: providerdtest.NewJournal(), answers: map[string]int{}}
	s := &soak{server: server, journal: journal, watch: newSoakWatch(server, journal)}
	var err error
	if s.idle, err = s.watch.sample(); err != nil {
		t.Fatal(err)
	}
	creates, watch := startSoakLoad(t, server, journal, server.folder, next), s.watch.start(interval)
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

// operate runs a command of the program as shipped, beside the server, and logs what it says.
func (s *soak) operate(t *testing.T, arguments ...string) {
	t.Helper()
	t.Log(providerdtest.RunProgram(t, s.server.program, s.server.folder, arguments...))
}

// account compares what was acknowledged with what is stored, and the backup with what it was made of.
func (s *soak) account(t *testing.T) {
	t.Helper()
	s.journal.Compare(t, providerdtest.Stored(t, s.server.folder))
	s.operate(t, "doctor")
	providerdtest.CompareRestored(t, s.server.folder, providerdtest.RestoreBackup(t, s.server.folder), s.backup.creates)
}
