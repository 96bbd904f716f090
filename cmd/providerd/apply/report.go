package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/store"
)

// report holds the entries of all files in order.
type report struct {
	output   string
	messages *console.Messages
	isDryRun bool
	// isDetailed is true if entries that would be created make the exit status 3.
	isDetailed bool
	// changesRecords is true if stored records are made as the files say.
	changesRecords bool
	applied        []applied
}

func newReport(c *Command, messages *console.Messages, entries []manifest.Entry) (*report, error) {
	report := &report{
		output: c.Output, messages: messages, isDryRun: c.DryRun, isDetailed: c.DetailedExitcode,
		changesRecords: c.writesDatabase(), applied: make([]applied, len(entries)),
	}
	for i, entry := range entries {
		kind, err := KindOf(store.Kind(entry.Kind))
		if err != nil {
			return nil, err
		}
		advice, err := kind.advise(entry.Body)
		if err != nil {
			return nil, err
		}
		at := entry.At("")
		report.applied[i] = applied{entry: entry, kind: kind, appliedJSON: appliedJSON{
			Kind: entry.Kind, ID: entry.ID, Was: entry.Was, File: at.File, Line: at.Line, Outcome: outcomePending,
			Advice: advice,
		}}
	}
	return report, nil
}

// printAdvice prints the advice for the entries and returns the number of entries that have some.
func (r *report) printAdvice() (advised int) {
	for _, a := range r.applied {
		for _, advice := range a.Advice {
			r.messages.At(a.entry.At(advice.Pointer).String(), a.Kind, a.ID,
				fmt.Sprintf("advice: %s: %s (%s)", advice.Pointer, advice.Detail, advice.Section))
		}
		if len(a.Advice) > 0 {
			advised++
		}
	}
	return advised
}

// refuseAdvised returns the error of --strict and, in JSON, prints the entries with their advice.
func (r *report) refuseAdvised(out *console.Output, advised int) error {
	if r.output == console.FormatJSON {
		if err := printJSON(out, r.applied); err != nil {
			return err
		}
	}
	return fmt.Errorf("there is advice for %s; nothing was stored", console.Count(advised, "entry", "entries"))
}

// printEntries prints the entries without outcomes, which only a server knows.
func (r *report) printEntries(out *console.Output) error {
	if r.output == console.FormatJSON {
		if err := printJSON(out, r.applied); err != nil {
			return err
		}
	} else {
		list := console.NewTable(out, "KIND", "ID", "PLACE")
		for _, a := range r.applied {
			list.Row(a.Kind, a.ID, a.place())
		}
		if err := list.Flush(); err != nil {
			return err
		}
	}
	r.messages.Note("checked %s without a server; pass --server or --as to see their outcomes",
		console.Count(len(r.applied), "entry", "entries"))
	return nil
}

// print prints the entries with their outcomes, why some differ or were refused, and a summary.
func (r *report) print(out *console.Output) error {
	r.printDetails()
	counts := r.counts()
	if r.isOfAnotherToken(counts) {
		r.messages.Warn("every client_id is taken, but nothing was created with a token of this name; " +
			"apply the files with a token of the same name as before")
	}
	if err := r.printOutcomes(out); err != nil {
		return err
	}
	r.printSummary(counts)
	return r.result(counts)
}

// printDetails prints why entries differ or were refused.
func (r *report) printDetails() {
	for i := range r.applied {
		r.printDetail(&r.applied[i])
	}
}

func (r *report) printDetail(a *applied) {
	if a.Detail != "" {
		r.messages.At(a.entry.At(a.pointer).String(), a.Kind, a.ID, a.Detail)
	}
}

// counts returns the number of entries with each outcome.
func (r *report) counts() map[outcome]int {
	counts := map[outcome]int{}
	for _, a := range r.applied {
		counts[a.Outcome]++
	}
	return counts
}

// result returns an error unless every entry is, or in a plan would be, stored as the files say. It is ErrDiffers if
// nothing failed.
func (r *report) result(counts map[outcome]int) error {
	bad := counts[outcomeDrifted] + counts[outcomeRefused]
	if !r.changesRecords {
		bad += counts[outcomeRenamed]
	}
	changes := counts[outcomeUpdate] + counts[outcomeRename] + counts[outcomeDelete]
	text := console.Count(bad, "entry is", "entries are") + " not stored as the files say"
	if r.isDryRun {
		text = console.Count(bad, "entry", "entries") + " would not be stored as the files say"
	}
	switch {
	case counts[outcomeRefused] > 0:
		return errors.New(text)
	case bad > 0:
		return differs{text}
	case changes > 0:
		return differs{console.Count(changes, "record") + " would be changed"}
	case r.isDetailed && counts[outcomeCreate] > 0:
		return differs{console.Count(counts[outcomeCreate], "entry", "entries") + " would be created"}
	default:
		return nil
	}
}

// differs is an ErrDiffers with a text of its own.
type differs struct{ text string }

func (d differs) Error() string { return d.text }

func (differs) Unwrap() error { return ErrDiffers }

// isOfAnotherToken reports whether each client_id in the files is taken although no entry is stored.
func (r *report) isOfAnotherToken(counts map[outcome]int) bool {
	isTaken := func(a applied) bool { return a.isClientIDTaken }
	return counts[outcomeUnchanged]+counts[outcomeDrifted]+counts[outcomeRenamed] == 0 &&
		slices.ContainsFunc(r.applied, isTaken) &&
		!slices.ContainsFunc(r.applied, func(a applied) bool { return !isTaken(a) && clientIDOf(a.entry) != "" })
}

func (r *report) printSummary(counts map[outcome]int) {
	shown, end := []outcome{outcomeCreated}, ""
	if r.isDryRun {
		shown, end = []outcome{outcomeCreate}, "; nothing was stored"
	}
	shown = append(shown, outcomeUnchanged, outcomeRefused)
	if !r.changesRecords {
		shown = append(shown, outcomeDrifted)
	}
	var parts []string
	for _, outcome := range []outcome{
		outcomeCreate, outcomeCreated, outcomeUpdate, outcomeUpdated, outcomeRename, outcomeRenamed, outcomeDelete,
		outcomeDeleted, outcomeUnchanged, outcomeDrifted, outcomeRefused, outcomePending,
	} {
		if counts[outcome] > 0 || slices.Contains(shown, outcome) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[outcome], outcome))
		}
	}
	records := counts[outcomeDelete] + counts[outcomeDeleted] + counts[outcomeOrphan]
	r.messages.Note("%s: %s%s", console.Count(len(r.applied)-records, "entry", "entries"), strings.Join(parts, ", "), end)
}

// printOutcomes prints the entries. The table omits those that were not sent and, except in a plan, unchanged ones.
func (r *report) printOutcomes(out *console.Output) error {
	if r.output == console.FormatJSON {
		return printJSON(out, r.applied)
	}
	shown := slices.DeleteFunc(slices.Clone(r.applied), func(a applied) bool {
		return a.Outcome == outcomePending || a.Outcome == outcomeUnchanged && !r.isDryRun
	})
	if len(shown) == 0 {
		return nil
	}
	list := console.NewTable(out, "OUTCOME", "KIND", "ID", "PLACE", "PK", "CLIENT ID", "REASON")
	for _, a := range shown {
		symbol, color := a.Outcome.mark()
		list.ColoredRow(color, symbol+" "+string(a.Outcome), a.Kind, a.ID, a.place(),
			strings.TrimPrefix(fmt.Sprint(a.PK), "0"), a.ClientID, a.reason)
	}
	return list.Flush()
}

func printJSON(out *console.Output, entries any) error {
	text, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return fmt.Errorf("render entries: %w", err)
	}
	return out.Line(string(escape.JSON(text)))
}
