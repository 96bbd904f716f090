package doctor

import (
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/console"
)

// health is the status of a finding.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn"
	healthFail health = "fail"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Status health `json:"status"`
	// Finding is what was found, and Remedy what to do about it; Remedy is "" if Status is ok.
	Finding string `json:"finding"`
	Remedy  string `json:"remedy"`
}

func passed(check, format string, values ...any) finding {
	return finding{Check: check, Status: healthOK, Finding: fmt.Sprintf(format, values...)}
}

func (f finding) as(status health, remedy string) finding {
	f.Status, f.Remedy = status, remedy
	return f
}

func warned(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).as(healthWarn, remedy)
}

func failed(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).as(healthFail, remedy)
}

// failedBy is failed for an error, with its known remedy or the one at the end of its text.
func failedBy(check string, err error) finding {
	text, remedy := err.Error(), console.RemedyFor(err)
	if at := strings.LastIndex(text, "; "); at >= 0 && remedy == "" {
		text, remedy = text[:at], text[at+len("; "):]
	}
	return finding{Check: check, Status: healthFail, Finding: text, Remedy: remedy}
}

// color returns the color of the status.
func (f finding) color() console.Color {
	switch f.Status {
	case healthFail:
		return console.Red
	case healthWarn:
		return console.Yellow
	case healthOK:
	}
	return console.Green
}

func (f finding) cells() [][]string {
	text := f.Finding
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return [][]string{{string(f.Status), f.Check, text}}
}
