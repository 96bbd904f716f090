package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestOperatingReadmeWorks pastes the commands of the README for operators that look at a database, in the folder of a
// running server.
func TestOperatingReadmeWorks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, match := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1) {
		if !strings.HasPrefix(match[1], "providerd doctor") && !strings.HasPrefix(match[1], "providerd migrate") {
			continue
		}
		paste(t, folder, match[1])
		ran++
	}
	if ran != 2 {
		t.Errorf("%d examples were found, want 2", ran)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}
