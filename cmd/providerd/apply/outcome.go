package apply

import (
	"fmt"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
)

// outcome is what became of an entry, or would become of it.
type outcome string

const (
	// outcomeFaulty is an entry that is not sent, nor any other.
	outcomeFaulty outcome = "faulty"
	// outcomePending is an entry that was not sent, or whose answer was not awaited.
	outcomePending outcome = "pending"
	// outcomeCreate is an entry that would be created.
	outcomeCreate    outcome = "create"
	outcomeCreated   outcome = "created"
	outcomeUnchanged outcome = "unchanged"
	// outcomeDrifted is an entry that has other values than the record that its id made.
	outcomeDrifted outcome = "drifted"
	outcomeRefused outcome = "refused"
)

// mark is how the outcome begins its line, and the color of that, as users of plans and diffs know them.
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

// Bounds of what is told of the answer of a server that may not be ours.
const (
	maxReasonBytes = 100
	maxDiffers     = 20
)

// applied is an entry with what became of it.
type applied struct {
	entry manifest.Entry
	kind  Kind
	appliedJSON
	// reason says in a few words why an entry is not stored as the file has it, and pointer at which value.
	reason, pointer string
	isClientIDTaken bool
}

// place is the line of the entry.
func (a applied) place() string { return fmt.Sprintf("%s:%d", a.File, a.Line) }

// appliedJSON is what programs are told of an entry.
type appliedJSON struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Column is that of a fault.
	Column  int     `json:"column,omitempty"`
	Outcome outcome `json:"outcome"`
	stored
	// Differs has the pointers of the fields in which a drifted entry differs from the record.
	Differs []string `json:"differs,omitempty"`
	// Detail says why an entry is not stored as the file has it.
	Detail string          `json:"detail,omitempty"`
	Advice []advice.Advice `json:"advice,omitempty"`
}
