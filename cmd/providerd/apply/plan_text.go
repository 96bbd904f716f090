package apply

import (
	"fmt"

	"example.com/providerd/cmd/providerd/console"
)

// print prints why entries would be refused and, as a table, the plan: unchanged entries only in a dry run.
func (p *plan) print(out *console.Output) error {
	p.printDetails()
	if p.output == console.FormatJSON {
		return nil
	}
	list := console.NewTable(out)
	list.Row(fmt.Sprintf("%s of %s", console.Count(p.owned, "record"), p.caller))
	for _, a := range p.applied {
		if a.Outcome == outcomeUnchanged && !p.isDryRun {
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

// title names an entry or a record in a plan.
func (a *applied) title() string {
	title := a.Kind + "/" + a.ID
	if a.ID == "" {
		title = fmt.Sprintf("%s %q", a.Kind, console.Truncate(a.Name, maxReasonBytes))
	}
	if a.PK != 0 {
		title += fmt.Sprintf(" (provider %d)", a.PK)
	}
	if a.Line != 0 {
		title += ", " + a.place()
	}
	if a.reason != "" {
		title += ": " + a.reason
	}
	return title
}

// finish prints what was written, a summary and, in a dry run, whether records differ.
func (p *plan) finish(out *console.Output) error {
	if err := p.printWritten(out); err != nil {
		return err
	}
	counts := p.counts()
	p.printSummary(counts)
	if len(p.orphans) > 0 {
		p.messages.Note("%s of %s without an entry; --verbose lists them, --prune deletes them",
			console.Count(len(p.orphans), "applied record"), p.caller)
	}
	return p.result(counts)
}

// printWritten prints the created records or, in JSON, all entries.
func (p *plan) printWritten(out *console.Output) error {
	if p.output == console.FormatJSON {
		return printJSON(out, p.applied)
	}
	list := console.NewTable(out)
	for _, a := range p.applied {
		if a.Outcome == outcomeCreated {
			symbol, color := a.Outcome.mark()
			list.ColoredRow(color, fmt.Sprintf("%s %s %s", symbol, a.Outcome, a.title()))
		}
	}
	return list.Flush()
}
