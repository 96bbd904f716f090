package doctor

import (
	"fmt"

	"example.com/providerd/cmd/providerd/console"
)

// health is how good what a check found is.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn"
	healthFail health = "fail"
)

// finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	Status health `json:"status"`
	// Finding says what is so, and Remedy what to do about it; "" where it is ok.
	Finding string `json:"finding"`
	Remedy  string `json:"remedy"`
}

func passed(check, format string, values ...any) finding {
	return finding{Check: check, Status: healthOK, Finding: fmt.Sprintf(format, values...)}
}

func (f finding) but(status health, remedy string) finding {
	f.Status, f.Remedy = status, remedy
	return f
}

func warned(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).but(healthWarn, remedy)
}

func failed(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).but(healthFail, remedy)
}

// failedBy is failed for an error, with what explain knows to do about it.
func failedBy(check string, err error) finding {
	return finding{Check: check, Status: healthFail, Finding: err.Error(), Remedy: console.RemedyFor(err)}
}

func (f finding) cells() [][]string {
	text := f.Finding
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return [][]string{{string(f.Status), f.Check, text}}
}
