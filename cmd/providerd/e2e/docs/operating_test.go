package docs_test

import (
	"regexp"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestOperatingReadmeWorks pastes the commands of the README for operators that look at a database, in the folder of a
// running server.
func TestOperatingReadmeWorks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	providerdtest.Serve(t, folder)
	readme := providerdtest.ReadFile(t, "cmd/providerd/README.md")
	ran := 0
	diagnosis := regexp.MustCompile(`^providerd (doctor|migrate|version)`)
	for _, commands := range providerdtest.CodeBlocks(readme, "sh") {
		if diagnosis.MatchString(commands) {
			providerdtest.RunShell(t, folder, commands)
			ran++
		}
	}
	if ran != 3 {
		t.Errorf("%d examples were found, want 3", ran)
	}
}
