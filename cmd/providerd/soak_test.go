//go:build slow

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
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
	s := startSoak(t, buildProgram(t), max(length/soakSamples, 100*time.Millisecond))
	for _, event := range soakEvents() {
		s.await(t, time.Duration(event.share*float64(length)))
		from := s.now()
		event.run(t, s)
		s.marks = append(s.marks, figures.Mark{Label: event.label, From: from, To: s.now()})
	}
	s.await(t, length)
	waitUntil(t, "enough is seen of the second process", func() bool { return s.watch.seen() >= 2*minSamples })
	s.end(t)
	s.account(t)
	s.report(t, length >= wholeSoak)
}

// soak is a server under steady load, and what was seen of it.
type soak struct {
	server *operated
	load   *soakLoad
	watch  *soakWatch
	idle   soakSample
	marks  []figures.Mark
	// ended is when the first process had.
	ended time.Duration
	// log is what the log of the first process had.
	log    logCount
	backup struct {
		creates map[string]soakCreate
		took    time.Duration
		bytes   int64
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
	writeCertificate(t, next, 2)
	journal := newSoakJournal()
	watch := newSoakWatch(server, journal)
	idle, err := watch.sample()
	if err != nil {
		t.Fatal(err)
	}
	load := startSoakLoad(t, server, journal, server.folder, next)
	go watch.run(t.Context(), interval)
	return &soak{server: server, load: load, watch: watch, idle: idle}
}

func (s *soak) now() time.Duration { return time.Since(s.load.journal.begun) }

// await waits until this much of the time is over.
func (s *soak) await(t *testing.T, moment time.Duration) {
	t.Helper()
	select {
	case <-time.After(moment - s.now()):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// operate runs a command of the program as shipped, beside the server, and logs what it says.
func (s *soak) operate(t *testing.T, arguments ...string) {
	t.Helper()
	t.Log(operateWith(t, s.server.program, s.server.folder, arguments...))
}

// end ends the load, the watch and the server.
func (s *soak) end(t *testing.T) {
	t.Helper()
	s.load.end()
	s.processes = s.watch.end()
	s.server.stop(t)
}

// account compares what was acknowledged with what is stored, and the backup with what it was made of.
func (s *soak) account(t *testing.T) {
	t.Helper()
	journal := s.load.journal
	for i, fault := range journal.faults {
		if i < 20 {
			t.Error(fault)
		}
	}
	found, wrong := 0, []string{}
	database := openData(t, s.server.folder, storetest.OpenSQLite)
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		// The error of a secret that does not open is one of these.
		if err != nil {
			t.Fatal(err)
		}
		found++
		if got, want := storedCreate(record), journal.creates[record.Common().Name]; got != want {
			wrong = append(wrong, fmt.Sprintf("%s, stored as %d, acknowledged as %d", record.Common().Name, got.pk, want.pk))
		}
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	if found != len(journal.creates) || len(wrong) > 0 {
		t.Errorf("%d records are stored, %d creates were acknowledged; %d are wrong, such as %v",
			found, len(journal.creates), len(wrong), wrong[:min(5, len(wrong))])
	}
	s.operate(t, "doctor")
	var backedUp []int32
	for _, one := range s.backup.creates {
		backedUp = append(backedUp, one.pk)
	}
	compareRestored(t, s.server.folder, restoreElsewhere(t, s.server.folder), backedUp)
}

func storedCreate(record store.Record) soakCreate {
	switch provider := record.(type) {
	case store.OAuth2Provider:
		return soakCreate{provider.PK, provider.ClientSecret.Reveal()}
	case store.WorkspaceDirectoryProvider:
		return soakCreate{provider.PK, provider.Credentials.Reveal()}
	default:
		return soakCreate{}
	}
}
