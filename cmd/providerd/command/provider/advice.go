package provider

import (
	"fmt"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// advised is a provider with its advice.
type advised struct {
	PK     int64           `json:"pk"`
	Kind   store.Kind      `json:"kind"`
	Advice []advice.Advice `json:"advice"`
}

func adviceFor(record store.Record) advised {
	return advised{PK: record.Common().PK, Kind: record.Common().Kind, Advice: apply.Advise(record)}
}

func (p advised) rows() (rows [][]string) {
	for _, a := range p.Advice {
		rows = append(rows, []string{fmt.Sprint(p.PK), string(p.Kind), a.Pointer, a.Code, a.Section, a.Detail})
	}
	return rows
}

// noteAdvice prints the advice for the settings of a record.
func noteAdvice(messages *console.Messages, record store.Record) {
	for _, advice := range adviceFor(record).Advice {
		messages.Note("advice: %s: %s (%s)", advice.Pointer, advice.Detail, advice.Section)
	}
}
