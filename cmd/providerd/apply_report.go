package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/providerd/cmd/providerd/manifest"
)

// outcome is what became of an entry.
type outcome string

const (
	// outcomePending is an entry that was not sent, or whose answer was not awaited.
	outcomePending   outcome = "pending"
	outcomeCreated   outcome = "created"
	outcomeUnchanged outcome = "unchanged"
	outcomeDiffering outcome = "differing"
	outcomeFailed    outcome = "failed"
)

func outcomes() []outcome {
	return []outcome{outcomeCreated, outcomeUnchanged, outcomeDiffering, outcomeFailed, outcomePending}
}

// applied is an entry with what became of it.
type applied struct {
	entry   manifest.Entry
	outcome outcome
	stored  stored
	// detail says why an entry is not stored as the file has it, and at which value.
	detail  string
	pointer string
}

// MarshalJSON renders what became of the entry.
func (a applied) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(struct {
		Kind    string  `json:"kind"`
		ID      string  `json:"id"`
		Line    int     `json:"line"`
		Outcome outcome `json:"outcome"`
		stored
		Detail string `json:"detail,omitempty"`
	}{a.entry.Kind, a.entry.ID, a.entry.At("").Line, a.outcome, a.stored, a.detail})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", a.entry.ID, err)
	}
	return text, nil
}

// applyReport has the entries of a file in their order.
type applyReport struct {
	fileName string
	output   string
	applied  []applied
}

func newApplyReport(fileName, output string, entries []manifest.Entry) *applyReport {
	report := &applyReport{fileName: fileName, output: output, applied: make([]applied, len(entries))}
	for i, entry := range entries {
		report.applied[i] = applied{entry: entry, outcome: outcomePending}
	}
	return report
}

// plan shows what would be sent. Whether it is stored already, only the server could tell, and only by storing it.
func (r *applyReport) plan(out *output) error {
	if r.output == formatJSON {
		if err := printApplied(out, r.applied); err != nil {
			return err
		}
	} else {
		list := newTable(out, "KIND", "ID", "LINE")
		for _, one := range r.applied {
			list.row(one.entry.Kind, one.entry.ID, fmt.Sprint(one.entry.At("").Line))
		}
		if err := list.flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "%s would be sent; nothing was\n", count(len(r.applied), "entry", "entries"))
	return nil
}

// print shows the entries, why some are not stored as the file has them, and how many there are of each outcome.
func (r *applyReport) print(out *output) error {
	counts := map[outcome]int{}
	for _, one := range r.applied {
		counts[one.outcome]++
		if one.detail != "" {
			tellAt(r.fileName, one.entry.At(one.pointer), one.entry.Kind, one.entry.ID, one.detail)
		}
	}
	if err := r.printOutcomes(out); err != nil {
		return err
	}
	var parts []string
	for _, outcome := range outcomes() {
		if outcome != outcomePending || counts[outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[outcome], outcome))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", count(len(r.applied), "entry", "entries"), strings.Join(parts, ", "))
	if bad := counts[outcomeDiffering] + counts[outcomeFailed]; bad > 0 {
		return errors.New(count(bad, "entry is", "entries are") + " not stored as the file has it")
	}
	return nil
}

// printOutcomes leaves out of the table what is as it was before.
func (r *applyReport) printOutcomes(out *output) error {
	if r.output == formatJSON {
		return printApplied(out, r.applied)
	}
	shown := slices.DeleteFunc(slices.Clone(r.applied), func(one applied) bool {
		return one.outcome == outcomePending || one.outcome == outcomeUnchanged
	})
	if len(shown) == 0 {
		return nil
	}
	list := newTable(out, "OUTCOME", "KIND", "ID", "LINE", "PK", "CLIENT ID")
	for _, one := range shown {
		list.row(string(one.outcome), one.entry.Kind, one.entry.ID, fmt.Sprint(one.entry.At("").Line),
			strings.TrimPrefix(fmt.Sprint(one.stored.PK), "0"), one.stored.ClientID)
	}
	return list.flush()
}

func printApplied(out *output, entries []applied) error {
	text, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return fmt.Errorf("render entries: %w", err)
	}
	return out.line(string(text))
}

// tellAt says something of a place in a file, in the form that editors and terminals make a link of.
func tellAt(fileName string, at manifest.Position, kind, id, detail string) {
	place := fileName
	if at.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", fileName, at.Line, max(at.Column, 1))
	}
	if kind != "" {
		place += ": " + kind
	}
	if id != "" {
		place += "/" + id
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", printable(place), printable(detail))
}

// What a server that is not ours may say is told up to these bounds. The longest client_id has 255 characters.
const (
	maxErrorBytes    = 4096
	maxClientIDBytes = 255 * utf8.UTFMax
)

func shortened(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// count puts a number before a word.
func count(number int, one string, many ...string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, cmp.Or(strings.Join(many, ""), one+"s"))
}
