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
)

// report has the entries of all files in their order.
type report struct {
	output   string
	messages *console.Messages
	isPlan   bool
	applied  []applied
}

func newReport(output string, isPlan bool, messages *console.Messages, entries []manifest.Entry) (*report, error) {
	report := &report{output: output, messages: messages, isPlan: isPlan, applied: make([]applied, len(entries))}
	for i, entry := range entries {
		kind, err := kindOf(entry)
		if err != nil {
			return nil, err
		}
		advice, err := kind.advise(entry.Body)
		if err != nil {
			return nil, err
		}
		at := entry.At("")
		report.applied[i] = applied{entry: entry, kind: kind, appliedJSON: appliedJSON{
			Kind: entry.Kind, ID: entry.ID, File: at.File, Line: at.Line, Outcome: outcomePending, Advice: advice,
		}}
	}
	return report, nil
}

// tellAdvice tells what could be better about the entries, and for how many there is something.
func (r *report) tellAdvice() (advised int) {
	for _, one := range r.applied {
		for _, advice := range one.Advice {
			r.messages.At(one.entry.At(advice.Pointer).String(), one.Kind, one.ID,
				fmt.Sprintf("advice: %s %s (%s)", advice.Pointer, advice.Detail, advice.Section))
		}
		if len(one.Advice) > 0 {
			advised++
		}
	}
	return advised
}

// refuseAdvised tells that nothing was sent, and programs to which entries there is advice.
func (r *report) refuseAdvised(out *console.Output, advised int) error {
	if r.output == console.FormatJSON {
		if err := printJSON(out, r.applied); err != nil {
			return err
		}
	}
	return fmt.Errorf("there is advice for %s; nothing was sent", console.Count(advised, "entry", "entries"))
}

// printEntries shows what the files have. What would become of it, only a server can tell.
func (r *report) printEntries(out *console.Output) error {
	if r.output == console.FormatJSON {
		if err := printJSON(out, r.applied); err != nil {
			return err
		}
	} else {
		list := console.NewTable(out, "KIND", "ID", "PLACE")
		for _, one := range r.applied {
			list.Row(one.Kind, one.ID, one.place())
		}
		if err := list.Flush(); err != nil {
			return err
		}
	}
	r.messages.Note("%s checked without a server; name one with --server to see what would become of them",
		console.Count(len(r.applied), "entry", "entries"))
	return nil
}

// print shows the entries, why some are not stored as the file has them, and how many there are of each outcome.
func (r *report) print(out *console.Output) error {
	counts := map[outcome]int{}
	for _, one := range r.applied {
		counts[one.Outcome]++
		if one.Detail != "" {
			r.messages.At(one.entry.At(one.pointer).String(), one.Kind, one.ID, one.Detail)
		}
	}
	if r.isOfAnotherToken(counts) {
		r.messages.Warn("every client_id is taken, and no entry is stored under the name of this token; " +
			"was the file applied with a token of another name? What is stored belongs to the name of the token")
	}
	if err := r.printOutcomes(out); err != nil {
		return err
	}
	r.printSummary(counts)
	bad := counts[outcomeDrifted] + counts[outcomeRefused]
	switch {
	case bad > 0 && r.isPlan:
		return errors.New(console.Count(bad, "entry", "entries") + " would not be stored as the file has it")
	case bad > 0:
		return errors.New(console.Count(bad, "entry is", "entries are") + " not stored as the file has it")
	default:
		return nil
	}
}

// isOfAnotherToken reports whether each client_id of the files is taken, and nothing of them is known to be stored.
func (r *report) isOfAnotherToken(counts map[outcome]int) bool {
	isTaken := func(one applied) bool { return one.isClientIDTaken }
	return counts[outcomeUnchanged]+counts[outcomeDrifted] == 0 && slices.ContainsFunc(r.applied, isTaken) &&
		!slices.ContainsFunc(r.applied, func(one applied) bool { return !isTaken(one) && clientIDOf(one.entry) != "" })
}

func (r *report) printSummary(counts map[outcome]int) {
	first, end := outcomeCreated, ""
	if r.isPlan {
		first, end = outcomeCreate, "; nothing was stored"
	}
	var parts []string
	for _, outcome := range []outcome{first, outcomeUnchanged, outcomeDrifted, outcomeRefused, outcomePending} {
		if outcome != outcomePending || counts[outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[outcome], outcome))
		}
	}
	r.messages.Note("%s: %s%s", console.Count(len(r.applied), "entry", "entries"), strings.Join(parts, ", "), end)
}

// printOutcomes leaves out of the table what was not sent and, but in a plan, what is as it was before.
func (r *report) printOutcomes(out *console.Output) error {
	if r.output == console.FormatJSON {
		return printJSON(out, r.applied)
	}
	shown := slices.DeleteFunc(slices.Clone(r.applied), func(one applied) bool {
		return one.Outcome == outcomePending || one.Outcome == outcomeUnchanged && !r.isPlan
	})
	if len(shown) == 0 {
		return nil
	}
	list := console.NewTable(out, "OUTCOME", "KIND", "ID", "PLACE", "PK", "CLIENT ID", "REASON")
	for _, one := range shown {
		symbol, color := one.Outcome.mark()
		list.ColoredRow(color, symbol+" "+string(one.Outcome), one.Kind, one.ID, one.place(),
			strings.TrimPrefix(fmt.Sprint(one.PK), "0"), one.ClientID, one.reason)
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
