//go:build slow

package soak_test

import (
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// plantedCreates make a leak larger than what a figure may differ without one.
const plantedCreates = 24_000

// TestSoakFindsPlantedLeaks loads a program that leaks 1 KiB with each transaction, and a goroutine and a descriptor
// with each hundredth. None of the measures may be judged flat.
func TestSoakFindsPlantedLeaks(t *testing.T) {
	program := providerdtest.Fault{
		Title: "memory, goroutines and descriptors that are never given back", File: "store/sqlite/guard/guard.go",
		Old: "func (f *Files) CheckUnlessRecent() error {",
		New: "var planted [][]byte\n\nvar plantedFiles []*File\n\nfunc (f *Files) CheckUnlessRecent() error {\n" +
			"\tplanted = append(planted, append(make([]byte, 0, 1<<10), sqliteMagic...))\n" +
			"\tif len(planted)%100 == 0 {\n\t\tgo func() { select {} }()\n" +
			"\t\tfile, _ := open(f.database.Name(), moveAway)\n\t\tplantedFiles = append(plantedFiles, file)\n\t}\n",
	}.Build(t)
	s := startSoak(t, program, time.Second)
	for creates := 0; creates < plantedCreates; creates, _ = s.journal.soFar() {
		<-time.After(time.Second)
	}
	s.end(t)
	for _, m := range soakMeasures() {
		found := m.judge(s.processes[0])
		t.Logf("%s: %+v", m.name, found)
		if found.isFlat() {
			t.Errorf("%s: the judgement lets it pass", m.name)
		}
	}
}
