package sqlite

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

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
