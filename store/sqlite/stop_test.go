package sqlite_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// TestStopWaitsForTransaction stops a program within a transaction, as Ctrl-Z does. It is stopped once others can write.
func TestStopWaitsForTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := processtest.StartSelf(t, "stop", r.path)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		other.End(t)
	}()
	processtest.WaitUntil(t, "the program is stopped", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Command.Process.Pid))
		return err == nil && strings.Contains(string(state), ") T ")
	})
	if err := r.commit(t.Context(), "beside it"); err != nil {
		t.Error(err)
	}
	processtest.Must(t, other.Command.Process.Signal(syscall.SIGCONT))
	<-ended
	if slugs := r.slugs(t); !slices.Equal(slugs, []string{"stopped", "beside it"}) {
		t.Errorf("stored are %v", slugs)
	}
	r.close(t)
}
