package main

import (
	"encoding/json"
	"fmt"

	"example.com/providerd/cmd/providerd/manifest"
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

// symbol is how the outcome begins its line, as users of plans and diffs know it.
func (o outcome) symbol() string {
	switch o {
	case outcomeCreate, outcomeCreated:
		return "+"
	case outcomeUnchanged:
		return "="
	case outcomeDrifted:
		return "~"
	case outcomeRefused, outcomeFaulty:
		return "!"
	case outcomePending:
	}
	return "?"
}

// color is that of plans and diffs, too.
func (o outcome) color() color {
	switch o {
	case outcomeCreate, outcomeCreated:
		return green
	case outcomeDrifted:
		return yellow
	case outcomeRefused, outcomeFaulty:
		return red
	case outcomeUnchanged, outcomePending:
	}
	return noColor
}

// Bounds of what is told of the answer of a server that may not be ours.
const (
	maxReasonBytes = 100
	maxDiffers     = 20
)

// applied is an entry with what became of it.
type applied struct {
	entry   manifest.Entry
	advice  []advice.Advice
	outcome outcome
	stored  stored
	// detail says why an entry is not stored as the file has it, and at which value; reason says it in a few words.
	detail, reason string
	pointer        string
	// differs has the pointers of the fields in which a drifted entry differs from the record.
	differs         []string
	isClientIDTaken bool
}

// place is the line of the entry.
func (a applied) place() string {
	at := a.entry.At("")
	return fmt.Sprintf("%s:%d", at.File, at.Line)
}

// appliedJSON is what programs are told of an entry. Column is that of a fault.
type appliedJSON struct {
	Kind    string  `json:"kind"`
	ID      string  `json:"id"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Column  int     `json:"column,omitempty"`
	Outcome outcome `json:"outcome"`
	stored
	Differs []string        `json:"differs,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Advice  []advice.Advice `json:"advice,omitempty"`
}

// MarshalJSON renders what became of the entry.
func (a applied) MarshalJSON() ([]byte, error) {
	at := a.entry.At("")
	text, err := json.Marshal(appliedJSON{
		Kind: a.entry.Kind, ID: a.entry.ID, File: at.File, Line: at.Line,
		Outcome: a.outcome, stored: a.stored, Differs: a.differs, Detail: a.detail, Advice: a.advice,
	})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", a.entry.ID, err)
	}
	return text, nil
}
