package command

import (
	"runtime/debug"
	"testing"
)

// What a program tells of its commit says whether that is all that it was built from.
func TestCommitOf(t *testing.T) {
	t.Parallel()
	const commit, time = "8e68dc4f0c6c5b1de3b0fbb1c1fcf9b2c3a0d4e5", "2026-01-31T08:00:00Z"
	for want, settings := range map[string][]debug.BuildSetting{
		"unknown":                {{Key: "GOOS", Value: "linux"}},
		commit + " of " + time:   {{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: time}, {Key: "vcs.modified", Value: "false"}},
		commit + " with changes": {{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: time}, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := commitOf(&debug.BuildInfo{Settings: settings}); got != want {
			t.Errorf("of %v, %q is told, want %q", settings, got, want)
		}
	}
}
