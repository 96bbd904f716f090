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
	outcomeUpdate  outcome = "update"
	outcomeUpdated outcome = "updated"
	outcomeRename  outcome = "rename"
	// outcomeRenamed is an entry whose record got its id or, over HTTP, is stored under its former one.
	outcomeRenamed outcome = "renamed"
	// outcomeDelete is a record without an entry that would be deleted.
	outcomeDelete  outcome = "delete"
	outcomeDeleted outcome = "deleted"
	outcomeRefused outcome = "refused"
	// outcomeOrphan is a record that no entry names.
	outcomeOrphan outcome = "orphan"
)

// mark returns the symbol and color of the outcome, as in plans and diffs.
func (o outcome) mark() (symbol string, color console.Color) {
	switch o {
	case outcomeCreate, outcomeCreated:
		return "+", console.Green
	case outcomeUnchanged:
		return "=", console.NoColor
	case outcomeDrifted, outcomeUpdate, outcomeUpdated, outcomeRename, outcomeRenamed:
		return "~", console.Yellow
	case outcomeDelete, outcomeDeleted:
		return "-", console.Red
	case outcomeRefused, outcomeFaulty:
		return "!", console.Red
	case outcomePending, outcomeOrphan:
	}
	return "?", console.NoColor
}

// done returns the outcome of a change that was written.
func (o outcome) done() outcome {
	return map[outcome]outcome{
		outcomeUpdate: outcomeUpdated, outcomeRename: outcomeRenamed, outcomeDelete: outcomeDeleted,
	}[o]
}

// Limits for responses, which may come from a server other than providerd.
const (
	maxReasonBytes = 100
	maxDiffers     = 20
)

// applied is an entry with its outcome, or a record that no entry names.
type applied struct {
	entry manifest.Entry
	kind  Kind
	appliedJSON
	// version identifies the version of the stored record that would be changed; "" if none would be.
	version string
	// reason summarizes why the record differs from the entry, and pointer leads to the value.
	reason, pointer string
	isClientIDTaken bool
}

// place returns the file and line of the entry.
func (a applied) place() string { return fmt.Sprintf("%s:%d", a.File, a.Line) }

// appliedJSON is an entry in JSON output.
type appliedJSON struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Was is the former id of the entry.
	Was  string `json:"was,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Column is the column of a problem.
	Column  int     `json:"column,omitempty"`
	Outcome outcome `json:"outcome"`
	stored
	// Name is the name of a record that no entry names.
	Name string `json:"name,omitempty"`
	// Differs holds the pointers of the fields in which a drifted entry differs from the record.
	Differs []string `json:"differs,omitempty"`
	// Changes are the fields that get another value.
	Changes []FieldDiff `json:"changes,omitempty"`
	// Undo is the command that gives fields their old values, or deletes what was created.
	Undo string `json:"undo,omitempty"`
	// Detail explains why the record differs from the entry.
	Detail string          `json:"detail,omitempty"`
	Advice []advice.Advice `json:"advice,omitempty"`
}
