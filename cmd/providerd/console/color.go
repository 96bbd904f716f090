package console

import (
	"fmt"
	"os"

	"github.com/mattn/go-isatty"
)

// Color is the parameter of the terminal's control sequence SGR (ECMA-48, 8.3.117) that sets it.
type Color int

// The colors in use. NoColor leaves a text as it is.
const (
	NoColor Color = 0
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
)

// paint colors a text that is written to a terminal.
func (c Color) paint(output *os.File, text string) string {
	if c == NoColor || !takesColor(output) {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// takesColor tells whether colors can be seen, and nobody has asked for none (no-color.org).
func takesColor(output *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(output.Fd())
}
