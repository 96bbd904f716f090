package doctor

import (
	"time"

	"example.com/providerd/cmd/providerd/console"
)

const (
	checkOfClock = "clock"
	// clockTolerance is how far two clocks that are synchronised may be apart.
	clockTolerance = 5 * time.Second
	synchronise    = "synchronise the clock, such as by systemd-timesyncd or chrony"
)

// checkClockOfRecords compares the clock with the time at which the newest record was stored.
func checkClockOfRecords(newest time.Time) finding {
	if ahead := time.Until(newest); ahead > clockTolerance {
		return failed(checkOfClock, synchronise+": tokens end by it",
			"it says %s, which is %s before the newest record was stored", console.Timestamp(time.Now()),
			ahead.Round(time.Second))
	}
	return passed(checkOfClock, "no record was stored later than it says")
}

// checkClockOfServer compares the clock with that of the database.
func checkClockOfServer(at time.Time) finding {
	if apart := time.Since(at).Abs(); apart > clockTolerance {
		return warned(checkOfClock, synchronise, "it is %s apart from that of the database", apart.Round(time.Second))
	}
	return passed(checkOfClock, "it agrees with that of the database")
}
