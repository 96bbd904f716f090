package doctor

import (
	"time"

	"example.com/providerd/cmd/providerd/console"
)

const (
	checkOfClock = "clock"
	// clockTolerance is how much two synchronized clocks may differ.
	clockTolerance = 5 * time.Second
	synchronize    = "synchronize the clock, for example with systemd-timesyncd or chrony"
)

// checkClockOfRecords compares the clock with the time of the newest record.
func checkClockOfRecords(newest time.Time) finding {
	if ahead := time.Until(newest); ahead > clockTolerance {
		return failed(checkOfClock, synchronize+"; token expiry depends on it",
			"the clock reads %s, %s before the newest record was stored", console.Timestamp(time.Now()),
			ahead.Round(time.Second))
	}
	return passed(checkOfClock, "the clock is not behind the newest record")
}

// checkClockOfServer compares the clock with the database server's.
func checkClockOfServer(at time.Time) finding {
	if difference := time.Since(at).Abs(); difference > clockTolerance {
		return warned(checkOfClock, synchronize, "the clock differs from the database server's by %s",
			difference.Round(time.Second))
	}
	return passed(checkOfClock, "the clock agrees with the database server's")
}
