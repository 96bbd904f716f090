package apply

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
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
	outcomeUpdated outcome = "updated"
	outcomeRename  outcome = "rename"
	// outcomeRenamed is an entry whose record got its id or, over HTTP, is stored under its former one.
	outcomeRenamed outcome = "renamed"
	// outcomeAdopt is an entry that takes over the record with its client_id.
	outcomeAdopt   outcome = "adopt"
	outcomeAdopted outcome = "adopted"
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
		outcomeCreate: outcomeCreated, outcomeUpdate: outcomeUpdated, outcomeRename: outcomeRenamed,
		outcomeAdopt: outcomeAdopted, outcomeDelete: outcomeDeleted,
	}[o]
}

// mark returns the symbol and color of the outcome, as in plans and diffs.
func (o outcome) mark() (symbol string, color console.Color) {
	symbol = cmp.Or(map[outcome]string{
		outcomeCreate: "+", outcomeCreated: "+", outcomeUnchanged: "=", outcomeValid: "=", outcomeDelete: "-",
		outcomeDeleted: "-", outcomeRefused: "!", outcomeOrphan: "?",
	}[o], "~")
	return symbol, map[string]console.Color{
		"+": console.Green, "-": console.Red, "!": console.Red, "~": console.Yellow,
	}[symbol]
}

func (o outcome) isChange() bool { return o.done() != "" }

// applied is an entry with its outcome, or a record that no entry names.
type applied struct {
	manifest.Entry
	manifest.Position
	Outcome  outcome `json:"outcome"`
	PK       int64   `json:"pk,omitempty"`
	ClientID string  `json:"client_id,omitempty"`
	// Name is the name of a record without an entry.
	Name string `json:"name,omitempty"`
	// Differs holds the pointers of the fields in which a drifted entry differs from the record.
	Differs []string `json:"differs,omitempty"`
	// Changes are the fields that get another value.
	Changes []FieldDiff `json:"changes,omitempty"`
	// Undo is the command that gives fields their old values, or deletes what was created.
	Undo   string          `json:"undo,omitempty"`
	Detail string          `json:"detail,omitempty"`
	Advice []advice.Advice `json:"advice,omitempty"`

	kind Kind
	// clientID is the client_id of the entry; "" if it has none.
	clientID string
	// change is the planned change of the record. In a dry run, that of a stored one is not kept.
	change store.Change
}

func (a *applied) title() string {
	title := a.Kind + "/" + a.ID
	if a.ID == "" {
		title = fmt.Sprintf("%s %q", a.Kind, console.Truncate(a.Name, maxReasonBytes))
	}
	if a.PK != 0 {
		title += fmt.Sprintf(" (provider %d)", a.PK)
	}
	if a.Line != 0 {
		title += fmt.Sprintf(", %v", a.Position)
	}
	if a.Detail != "" {
		title += ": " + a.Detail
	}
	return title
}

const indent = "  "

// report holds the entries of all files in order.
type report struct {
	*Command
	out      *console.Output
	messages *console.Messages
	applied  []applied
}

// add adds entries, and prints the advice for them. With --strict, it returns an error if there is any.
func (r *report) add(entries []manifest.Entry) error {
	advised := 0
	for _, entry := range entries {
		record, err := contract.Requested(records.Kind(entry.Kind), "", nil, entry.Body, nil)
		if err != nil {
			return err
		}
		a := applied{
			Entry: entry, Position: entry.At(""), kind: KindOf(records.Kind(entry.Kind)), Outcome: outcomePending,
			Advice: append(Advise(record), adviseOnID(entry)...),
		}
		a.clientID, _ = fieldOf(entry, "client_id").(string)
		r.applied = append(r.applied, a)
		for _, advice := range a.Advice {
			r.messages.At(entry.At(advice.Pointer).String(), a.Kind, a.ID,
				fmt.Sprintf("advice: %s: %s (%s)", advice.Pointer, advice.Detail, advice.Section))
		}
		advised += min(len(a.Advice), 1)
	}
	if advised == 0 || !r.Strict {
		return nil
	}
	if r.Output == console.FormatJSON {
		if err := r.out.JSON(r.applied, indent); err != nil {
			return err
		}
	}
	return fmt.Errorf("there is advice for %s; nothing was stored", console.Count(advised, "entry", "entries"))
}

// print prints the entries with their outcomes: unchanged ones only in a dry run, and orphans only if they are few.
func (r *report) print() error {
	if r.Output == console.FormatJSON {
		return r.out.JSON(r.applied, indent)
	}
	const maxOrphans = 10
	list, orphans := console.NewTable(r.out), r.counts()[outcomeOrphan]
	for i := range r.applied {
		a := &r.applied[i]
		if a.Outcome == outcomePending || a.Outcome == outcomeUnchanged && !r.DryRun ||
			a.Outcome == outcomeOrphan && orphans > maxOrphans {
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

func (r *report) counts() map[outcome]int {
	counts := map[outcome]int{}
	for _, a := range r.applied {
		counts[a.Outcome]++
	}
	return counts
}

// finish prints a summary, and returns an error unless all is as the files say: a DiffersError if nothing failed.
func (r *report) finish() error {
	counts := r.counts()
	r.summarize(counts)
	bad := counts[outcomeDrifted] + counts[outcomeRefused]
	if r.As == nil {
		bad += counts[outcomeRenamed]
	}
	changes := counts[outcomeUpdate] + counts[outcomeRename] + counts[outcomeAdopt] + counts[outcomeDelete]
	text := console.Count(bad, "entry is", "entries are") + " not stored as specified in the files"
	if r.DryRun {
		text = console.Count(bad, "entry", "entries") + " would not be stored as specified in the files"
	}
	switch {
	case counts[outcomeRefused] > 0:
		return errors.New(text)
	case bad > 0:
		return console.DiffersError(text)
	case changes > 0:
		return console.DiffersError(console.Count(changes, "record") + " would be changed")
	case r.DetailedExitcode && counts[outcomeCreate] > 0:
		return console.DiffersError(console.Count(counts[outcomeCreate], "entry", "entries") + " would be created")
	default:
		return nil
	}
}

// summarize prints how many entries have which outcome, in the order of the changes.
func (r *report) summarize(counts map[outcome]int) {
	create, end := outcomeCreated, ""
	if r.DryRun {
		create, end = outcomeCreate, "; nothing was stored"
	}
	var parts []string
	for _, o := range []outcome{
		outcomeCreate, outcomeCreated, outcomeUpdate, outcomeUpdated, outcomeRename, outcomeRenamed, outcomeAdopt,
		outcomeAdopted, outcomeDelete, outcomeDeleted, outcomeUnchanged, outcomeDrifted, outcomeRefused, outcomePending,
	} {
		isShown := o == create || o == outcomeUnchanged || o == outcomeRefused || o == outcomeDrifted && r.As == nil
		if isShown || counts[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[o], o))
		}
	}
	records := counts[outcomeDelete] + counts[outcomeDeleted] + counts[outcomeOrphan]
	r.messages.Note("%s: %s%s", console.Count(len(r.applied)-records, "entry", "entries"), strings.Join(parts, ", "), end)
}
