package advice

import (
	"strconv"
	"strings"
	"time"
)

// isLonger reports whether a validity such as "hours=1;minutes=30" is longer than a limit. Invalid parts count as 0.
func isLonger(validity string, limit time.Duration) bool {
	var milliseconds float64
	for part := range strings.SplitSeq(validity, ";") {
		unit, text, _ := strings.Cut(part, "=")
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			milliseconds += number * millisecondsOf(unit)
		}
	}
	// A difference of less than a millisecond may be a rounding error of the sum.
	return milliseconds >= float64(limit.Milliseconds())+1
}

func millisecondsOf(unit string) float64 {
	const day = 24 * time.Hour
	switch unit {
	case "microseconds":
		return 1e-3
	case "milliseconds":
		return 1
	case "seconds":
		return float64(time.Second.Milliseconds())
	case "minutes":
		return float64(time.Minute.Milliseconds())
	case "hours":
		return float64(time.Hour.Milliseconds())
	case "days":
		return float64(day.Milliseconds())
	case "weeks":
		return float64((7 * day).Milliseconds())
	default:
		return 0
	}
}
