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
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// outcome is the outcome of an entry, or in a dry run the expected one.
type outcome string

const (
	// outcomeFaulty is an entry with a problem; no entry is sent.
	outcomeFaulty outcome = "faulty"
	// outcomeValid is an entry without a problem in a run that only checks the files.
	outcomeValid outcome = "valid"
	// outcomePending is an entry that was not sent, or whose response did not arrive.
	outcomePending   outcome = "pending"
	outcomeCreate    outcome = "create"
	outcomeCreated   outcome = "created"
	outcomeUnchanged outcome = "unchanged"
	// outcomeDrifted is an entry whose values differ from the record that its id created.
	outcomeDrifted outcome = "drifted"
	outcomeUpdate  outcome = "update"
	outcomeRename  outcome = "rename"
	// outcomeRenamed is an entry whose record got its id or, over HTTP, is stored under its former one.
	outcomeRenamed outcome = "renamed"
	// outcomeAdopt is an entry that takes over the record with its client_id.
	outcomeAdopt outcome = "adopt"
	// outcomeDelete is a record without an entry that would be deleted.
	outcomeDelete  outcome = "delete"
	outcomeDeleted outcome = "deleted"
	outcomeRefused outcome = "refused"
	// outcomeOrphan is a record that no entry names.
	outcomeOrphan outcome = "orphan"
)

// done returns the outcome of a change after it was written; "" if the outcome is not a change.
func (o outcome) done() outcome {
	return map[outcome]outcome{
		outcomeCreate: outcomeCreated, outcomeUpdate: "updated", outcomeRename: outcomeRenamed, outcomeAdopt: "adopted",
		outcomeDelete: outcomeDeleted,
	}[o]
}

// mark returns the symbol and color of the outcome, as in plans and diffs.
func (o outcome) mark() (symbol string, color console.Color) {
	for _, mark := range []struct {
		symbol   string
		color    console.Color
		outcomes []outcome
	}{
		{"+", console.Green, []outcome{outcomeCreate, outcomeCreated}},
		{"=", console.NoColor, []outcome{outcomeUnchanged, outcomeValid}},
		{"-", console.Red, []outcome{outcomeDelete, outcomeDeleted}},
		{"!", console.Red, []outcome{outcomeRefused, outcomeFaulty}},
		{"?", console.NoColor, []outcome{outcomePending, outcomeOrphan}},
	} {
		if slices.Contains(mark.outcomes, o) {
			return mark.symbol, mark.color
		}
	}
	return "~", console.Yellow
}

// applied is an entry with its outcome, or a record that no entry names.
type applied struct {
	entry manifest.Entry
	kind  Kind
	at    manifest.Position
	appliedJSON
	// clientID is the client_id of the entry; "" if it has none.
	clientID        string
	isClientIDTaken bool
	// change is the planned change of a stored record; nil in a dry run.
	change *store.Change
}

// appliedJSON is an entry in JSON output.
type appliedJSON struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Was is the former id of the entry.
	Was     string  `json:"was,omitempty"`
	File    string  `json:"file,omitempty"`
	Line    int     `json:"line,omitempty"`
	Column  int     `json:"column,omitempty"`
	Outcome outcome `json:"outcome"`
	// PK and ClientID are those of the record.
	PK       int64  `json:"pk,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	// Name is the name of a record that no entry names.
	Name string `json:"name,omitempty"`
	// Differs holds the pointers of the fields in which a drifted entry differs from the record.
	Differs []string `json:"differs,omitempty"`
	// Changes are the fields that get another value.
	Changes []FieldDiff `json:"changes,omitempty"`
	// Undo is the command that gives fields their old values, or deletes what was created.
	Undo string `json:"undo,omitempty"`
	// Detail explains the outcome.
	Detail string          `json:"detail,omitempty"`
	Advice []advice.Advice `json:"advice,omitempty"`
}

// pointAt makes a value in the body the place of the entry.
func (a *applied) pointAt(pointer string) {
	a.at = a.entry.At(pointer)
	a.File, a.Line, a.Column = a.at.File, a.at.Line, a.at.Column
}

// title describes an entry or a record in one line.
func (a *applied) title() string {
	title := a.Kind + "/" + a.ID
	if a.ID == "" {
		title = fmt.Sprintf("%s %q", a.Kind, console.Truncate(a.Name, maxReasonBytes))
	}
	if a.PK != 0 {
		title += fmt.Sprintf(" (provider %d)", a.PK)
	}
	if a.Line != 0 {
		title += ", " + a.at.String()
	}
	if a.Detail != "" {
		title += ": " + a.Detail
	}
	return title
}

// report holds the entries of all files in order.
type report struct {
	*Command
	out      *console.Output
	messages *console.Messages
	applied  []applied
}

// newReport prints the advice for the entries.
func newReport(c *Command, out *console.Output, messages *console.Messages, entries []manifest.Entry) (*report, error) {
	report := &report{Command: c, out: out, messages: messages, applied: make([]applied, len(entries))}
	for i, entry := range entries {
		a := &report.applied[i]
		*a = applied{entry: entry, clientID: clientIDOf(entry), appliedJSON: appliedJSON{
			Kind: entry.Kind, ID: entry.ID, Was: entry.Was, Outcome: outcomePending,
		}}
		a.pointAt("")
		var err error
		if a.kind, err = KindOf(store.Kind(entry.Kind)); err != nil {
			return nil, err
		}
		record, err := contract.Requested(store.Kind(entry.Kind), "", nil, entry.Body, nil)
		if err != nil {
			return nil, err
		}
		for _, advice := range Advise(record) {
			a.Advice = append(a.Advice, advice)
			messages.At(entry.At(advice.Pointer).String(), a.Kind, a.ID,
				fmt.Sprintf("advice: %s: %s (%s)", advice.Pointer, advice.Detail, advice.Section))
		}
	}
	return report, nil
}

// refuseAdvised returns the error of --strict if there is advice.
func (r *report) refuseAdvised() error {
	advised := 0
	for _, a := range r.applied {
		advised += min(len(a.Advice), 1)
	}
	if advised == 0 || !r.Strict {
		return nil
	}
	if r.Output == console.FormatJSON {
		if err := printJSON(r.out, r.applied); err != nil {
			return err
		}
	}
	return fmt.Errorf("there is advice for %s; nothing was stored", console.Count(advised, "entry", "entries"))
}

// print prints the entries with their outcomes. The list has unchanged ones only in a dry run.
func (r *report) print() error {
	if r.Output == console.FormatJSON {
		return printJSON(r.out, r.applied)
	}
	list := console.NewTable(r.out)
	for i := range r.applied {
		a := &r.applied[i]
		if a.Outcome == outcomePending || a.Outcome == outcomeUnchanged && !r.DryRun {
			continue
		}
		symbol, color := a.Outcome.mark()
		list.ColoredRow(color, fmt.Sprintf("%s %s %s", symbol, a.Outcome, a.title()))
		for _, change := range a.Changes {
			for _, line := range change.Lines() {
				list.Row("    " + line)
			}
		}
	}
	return list.Flush()
}

// counts returns the number of entries with each outcome.
func (r *report) counts() map[outcome]int {
	counts := map[outcome]int{}
	for _, a := range r.applied {
		counts[a.Outcome]++
	}
	return counts
}

// finish prints a summary and returns an error unless every entry is, or in a plan would be, stored as the files say.
// It is ErrDiffers if nothing failed.
func (r *report) finish() error {
	counts := r.counts()
	r.summarize(counts)
	bad, changes := counts[outcomeDrifted]+counts[outcomeRefused], 0
	if r.As == nil {
		bad += counts[outcomeRenamed]
	}
	for _, planned := range []outcome{outcomeUpdate, outcomeRename, outcomeAdopt, outcomeDelete} {
		changes += counts[planned]
	}
	text := console.Count(bad, "entry is", "entries are") + " not stored as the files say"
	if r.DryRun {
		text = console.Count(bad, "entry", "entries") + " would not be stored as the files say"
	}
	switch {
	case counts[outcomeRefused] > 0:
		return errors.New(text)
	case bad > 0:
		return differs{text}
	case changes > 0:
		return differs{console.Count(changes, "record") + " would be changed"}
	case r.DetailedExitcode && counts[outcomeCreate] > 0:
		return differs{console.Count(counts[outcomeCreate], "entry", "entries") + " would be created"}
	default:
		return nil
	}
}

// differs is an ErrDiffers with a text of its own.
type differs struct{ text string }

func (d differs) Error() string { return d.text }

func (differs) Unwrap() error { return ErrDiffers }

// summarize prints how many entries have which outcome, in the order of the changes.
func (r *report) summarize(counts map[outcome]int) {
	order := []outcome{outcomeCreate, outcomeUpdate, outcomeRename, outcomeAdopt, outcomeDelete}
	shown, end := []outcome{outcomeCreated}, ""
	if r.DryRun {
		shown, end = []outcome{outcomeCreate}, "; nothing was stored"
	}
	shown = append(shown, outcomeUnchanged, outcomeRefused)
	if r.As == nil {
		shown = append(shown, outcomeDrifted)
	}
	var parts []string
	add := func(outcome outcome) {
		if counts[outcome] > 0 || slices.Contains(shown, outcome) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[outcome], outcome))
		}
	}
	for _, planned := range order {
		add(planned)
		add(planned.done())
	}
	for _, outcome := range []outcome{outcomeUnchanged, outcomeDrifted, outcomeRefused, outcomePending} {
		add(outcome)
	}
	records := counts[outcomeDelete] + counts[outcomeDeleted] + counts[outcomeOrphan]
	r.messages.Note("%s: %s%s", console.Count(len(r.applied)-records, "entry", "entries"), strings.Join(parts, ", "), end)
}

func printJSON(out *console.Output, entries any) error {
	text, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return fmt.Errorf("render entries: %w", err)
	}
	return out.Line(string(escape.JSON(text)))
}
