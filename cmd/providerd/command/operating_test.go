package command

import (
	"os"
	"regexp"
	"testing"
)

// TestOperatingReadmeWorks pastes the commands of the README for operators that look at a database, in the folder of a
// running server.
func TestOperatingReadmeWorks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	serve(t, folder)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	diagnosis := regexp.MustCompile(`^providerd (doctor|migrate|version)`)
	for _, commands := range blocksOf(string(readme), "sh") {
		if diagnosis.MatchString(commands) {
			paste(t, folder, commands)
			ran++
		}
	}
	if ran != 3 {
		t.Errorf("%d examples were found, want 3", ran)
	}
}
