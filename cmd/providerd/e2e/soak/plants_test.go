//go:build slow

package soak_test

import (
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// leakyCreates is enough for a leak to exceed the slack of every measure.
const leakyCreates = 24_000

// TestSoakFindsInjectedLeaks loads a program that leaks 1 KiB per transaction, and a goroutine and a descriptor per 100
// transactions. No measure may be judged flat.
func TestSoakFindsInjectedLeaks(t *testing.T) {
	program := providerdtest.Fault{
		Title: "leak of memory, goroutines and descriptors", File: "store/sqlite/guard/guard.go",
		Old: "func (f *Files) CheckUnlessRecent() error {",
		New: "var leaked [][]byte\n\nvar leakedFiles []*File\n\nfunc (f *Files) CheckUnlessRecent() error {\n" +
			"\tleaked = append(leaked, append(make([]byte, 0, 1<<10), sqliteMagic...))\n" +
			"\tif len(leaked)%100 == 0 {\n\t\tgo func() { select {} }()\n" +
			"\t\tfile, _ := open(f.database.Name(), moveAway)\n\t\tleakedFiles = append(leakedFiles, file)\n\t}\n",
	}.Build(t)
	s := startSoak(t, program, time.Second)
	for creates := 0; creates < leakyCreates; creates, _ = s.journal.soFar() {
		<-time.After(time.Second)
	}
	s.end(t)
	for _, m := range soakMeasures() {
		found := m.judge(s.processes[0])
		t.Logf("%s: %+v", m.name, found)
		if found.isFlat() {
			t.Errorf("%s: the leak was not found", m.name)
		}
	}
}
