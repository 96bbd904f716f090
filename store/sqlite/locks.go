package sqlite

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/sqlite/connection"
)

// busyRound is how long SQLite waits in each of the attempts of untilLocked.
const busyRound = 20 * time.Millisecond

// untilLocked begins a transaction that writes. It waits for the lock of the database in rounds of busyRound: in a long
// one, SQLite soon tries only every 100 ms, and would rarely hit a gap between the transactions of another program.
func untilLocked(begin func() error) error {
	for begun := time.Now(); ; {
		err := begin()
		native, ok := errors.AsType[sqlite3.Error](err)
		if !ok || native.Code != sqlite3.ErrBusy || time.Since(begun) >= connection.BusyTimeout {
			return err
		}
	}
}

// contentionTime is how long inserts are observed before they count as contended.
const contentionTime = 10 * time.Second

// lockWaits adds up how long inserts wait for the lock of the database. since is when the current period began, before
// the total then, and contendedAt when the last period ended of which more than half was waiting, in Unix nanoseconds.
type lockWaits struct {
	total, contendedAt atomic.Int64
	since              time.Time
	before             int64
}

// add counts a wait, and reports whether the lock has become contended. One goroutine at a time calls it.
func (w *lockWaits) add(wait time.Duration) (becameContended bool) {
	total, now := w.total.Add(int64(wait)), time.Now()
	period, waited := now.Sub(w.since), time.Duration(total-w.before)
	if period < contentionTime {
		return false
	}
	if w.since, w.before = now, total; waited > period/2 {
		becameContended = !w.isContended()
		w.contendedAt.Store(now.UnixNano())
	}
	return becameContended
}

// isContended reports whether inserts waited for most of the last period, which a wait may have made longer.
func (w *lockWaits) isContended() bool {
	return time.Since(time.Unix(0, w.contendedAt.Load())) < 2*contentionTime
}

// withoutStop calls work, and lets a terminal stop the program (Ctrl-Z) only when it has returned: a program that is
// stopped within a transaction would stop all others that write.
func withoutStop(work func() error) error {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	defer func() {
		signal.Stop(stops)
		select {
		case <-stops:
			// A signal for this thread stops the program before the call returns.
			runtime.LockOSThread()
			_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
			runtime.UnlockOSThread()
		default:
		}
	}()
	return work()
}
