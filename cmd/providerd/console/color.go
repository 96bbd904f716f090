package console

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Color is the parameter that sets a color in the terminal control sequence SGR (ECMA-48, section 8.3.117).
type Color int

// The colors in use. NoColor leaves a string unchanged.
const (
	NoColor Color = 0
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
)

// paint colors a string if output is a terminal.
func (c Color) paint(output io.Writer, text string) string {
	if c == NoColor || !takesColor(output) {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// takesColor reports whether output shows colors and NO_COLOR is not set (no-color.org).
func takesColor(output io.Writer) bool {
	file, isFile := output.(*os.File)
	return isFile && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(file.Fd())
}
