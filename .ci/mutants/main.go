// Mutants changes one operator, condition, return or constant of product code at a time and reports whether the tests
// of the packages that import the file notice it. The source is not changed: each mutant is built with an overlay.
//
//	go run ./.ci/mutants -check <mutants.tsv       # says which no longer apply to the code
//	go run ./.ci/mutants <mutants.tsv >result.tsv  # tests each, the test that noticed it last time first
//
// Start with main and test.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"
)

func main() {
	isCheck := flag.Bool("check", false, "only check that each mutant applies to the code")
	budget := flag.Duration("budget", 90*time.Second, "how long the tests of one mutant may take")
	tags := flag.String("tags", "", "build tags of the tests")
	flag.Parse()
	if *isCheck {
		check()
		return
	}
	importers, err := readImporters()
	if err != nil {
		log.Fatal(err)
	}
	t := tester{importers: importers, budget: *budget, tags: *tags}
	survivors := 0
	for m, err := range readMutants(os.Stdin) {
		if err != nil {
			log.Fatal(err)
		}
		started := time.Now()
		m.noticedBy, err = t.test(m)
		if err != nil {
			m.noticedBy = err.Error()
		}
		if m.noticedBy == "" {
			survivors++
		}
		fmt.Println(m)
		log.Printf("%-60.60s %s (%.0f s)", m.file+" "+m.function, m.noticedBy, time.Since(started).Seconds())
	}
	log.Printf("%d mutants survived", survivors)
}

// check ends the program with an error if a mutant does not apply.
func check() {
	stale := 0
	for m, err := range readMutants(os.Stdin) {
		if err != nil {
			log.Fatal(err)
		}
		if _, err := m.find(); err != nil {
			stale++
			log.Printf("%s: %v", m, err)
		}
	}
	if stale > 0 {
		log.Fatalf("%d mutants do not apply", stale)
	}
}

// mutant is one change of the source. Its nth candidate of a kind in a function identifies it when lines move.
type mutant struct {
	file, function, kind string
	nth                  string
	before, after        string
	// noticedBy is the package and the test that failed, or empty.
	noticedBy string
}

func (m mutant) String() string {
	return strings.Join([]string{m.file, m.function, m.kind, m.nth, m.before, m.after, m.noticedBy}, "\t")
}

// readMutants reads what String writes.
func readMutants(from io.Reader) func(yield func(mutant, error) bool) {
	return func(yield func(mutant, error) bool) {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			fields := strings.Split(lines.Text(), "\t")
			if len(fields) != 7 {
				yield(mutant{}, fmt.Errorf("%d fields instead of 7: %s", len(fields), lines.Text()))
				return
			}
			m := mutant{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]}
			if !yield(m, nil) {
				return
			}
		}
	}
}
