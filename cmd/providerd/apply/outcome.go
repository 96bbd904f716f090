package apply

import (
	"fmt"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
)

// outcome is the outcome of an entry, or in a dry run the expected one.
type outcome string

const (
	// outcomeFaulty is an entry with a problem; no entry is sent.
	outcomeFaulty outcome = "faulty"
	// outcomePending is an entry that was not sent, or whose response did not arrive.
	outcomePending outcome = "pending"
	// outcomeCreate is an entry that would be created.
	outcomeCreate    outcome = "create"
	outcomeCreated   outcome = "created"
	outcomeUnchanged outcome = "unchanged"
	// outcomeDrifted is an entry whose values differ from the record that its id created.
	outcomeDrifted outcome = "drifted"
	outcomeRefused outcome = "refused"
)

// mark returns the symbol and color of the outcome, as in plans and diffs.
func (o outcome) mark() (symbol string, color console.Color) {
	switch o {
	case outcomeCreate, outcomeCreated:
		return "+", console.Green
	case outcomeUnchanged:
		return "=", console.NoColor
	case outcomeDrifted:
		return "~", console.Yellow
	case outcomeRefused, outcomeFaulty:
		return "!", console.Red
	case outcomePending:
	}
	return "?", console.NoColor
}

// Limits for responses, which may come from a server other than providerd.
const (
	maxReasonBytes = 100
	maxDiffers     = 20
)

// applied is an entry with its outcome.
type applied struct {
	entry manifest.Entry
	kind  Kind
	appliedJSON
	// reason summarizes why the record differs from the entry, and pointer leads to the value.
	reason, pointer string
	isClientIDTaken bool
}

// place returns the file and line of the entry.
func (a applied) place() string { return fmt.Sprintf("%s:%d", a.File, a.Line) }

// appliedJSON is an entry in JSON output.
type appliedJSON struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Column is the column of a problem.
	Column  int     `json:"column,omitempty"`
	Outcome outcome `json:"outcome"`
	stored
	// Differs holds the pointers of the fields in which a drifted entry differs from the record.
	Differs []string `json:"differs,omitempty"`
	// Detail explains why the record differs from the entry.
	Detail string          `json:"detail,omitempty"`
	Advice []advice.Advice `json:"advice,omitempty"`
}
