package command

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"providerd": func() { os.Exit(Main()) }})
}
