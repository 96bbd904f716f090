//go:build slow

package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// doublings returns a file with 40 anchors, each of which doubles the previous one.
func doublings(form, entry string) string {
	text := "x-0: &a0 {b: 1}\n"
	for i := range 40 {
		text += fmt.Sprintf("x-%d: &a%d "+form+"\n", i+1, i+1, i, i)
	}
	return text + "workspace_directory:\n- {name: a, " + entry + "}\n"
}

// directories returns a file of entries with the same credentials.
func directories(anchor string, count int, credentials string) string {
	text := strings.Builder{}
	text.WriteString(anchor + "workspace_directory:\n")
	for i := range count {
		fmt.Fprintf(&text, "- {name: n%d, credentials: %s}\n", i, credentials)
	}
	return text.String()
}

// TestAliasesTakeLittleMemory applies short files that expand to much data, and one that shares an anchor in an ordinary way.
func TestAliasesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const maxMebibytes = 400
	const (
		flow   = "  authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01\n"
		values = "exceeds the limit of 2000000 values for all files together, with aliases expanded"
	)
	repeated := func(text string, count int) string { return "[" + strings.Repeat(text+",", count) + "]" }
	shared := "x-d: &d\n" + flow + "  redirect_uris: |\n" + strings.Repeat("    https://a.example.com/callback\n", 10) + "oauth2:\n"
	for i := range 10_000 {
		shared += fmt.Sprintf("- {<<: *d, name: n%d}\n", i)
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"values": {
			[]string{"x-a: &a " + repeated("0", 99) + "\n" + directories("x-b: &b "+repeated("*a", 990)+"\n", 200, "{a: *b}")},
			"0.yaml:24:3: workspace_directory: " + values,
		},
		"values of several files": {
			[]string{
				directories("x-b: &b "+repeated("0", 99_000)+"\n", 15, "{a: *b}"), directories("x-b: &b "+repeated("0", 99_000)+"\n", 15, "{a: *b}"),
			}, "1.yaml:8:3: workspace_directory: " + values,
		},
		"long values":    {[]string{directories("x-s: &s "+strings.Repeat("x", 100_000)+"\n", 50, "{a: "+repeated("*s", 200)+"}")}, "is larger than 1 MiB as JSON"},
		"many bytes":     {[]string{directories("x-s: &s "+strings.Repeat("x", 500_000)+"\n", 400, "{a: *s}")}, "exceeds the limit of 128 MiB for all files"},
		"long name":      {[]string{directories("", 1, "{"+strings.Repeat("k", 300_000)+": "+repeated("0", 30_000)+"}")}, "`delegated_subject` is required."},
		"doubled values": {[]string{doublings("[*a%d, *a%d]", "credentials: {a: *a40}")}, "is larger than 1 MiB as JSON"},
		"doubled merges": {[]string{doublings("{<<: [*a%d, *a%d]}", "<<: *a40")}, values},
		"merges":         {[]string{directories("x-m: &m {a: 1, b: 2, c: 3}\n", 200, "{<<: "+repeated("*m", 10_000)+"}")}, values},
		"values unread":  {[]string{"x-a:\n" + strings.Repeat("- 0\n", 1_000_000)}, "0.yaml:1000001:1: " + values},
		"values in a line": {
			[]string{directories("", 1, "{a: "+repeated("[]", 330_000)+"}")}, "0.yaml:2:1: has more than 200000 values on one line",
		},
		"a long file":     {[]string{"#" + strings.Repeat("x", 64<<20)}, "the files up to and including 0.yaml exceed 64 MiB; apply fewer files at a time"},
		"faults":          {[]string{"oauth2:\n" + strings.Repeat("- {}\n", 300_000)}, "at least 10000 problems in 1 file; nothing was stored"},
		"a shared anchor": {[]string{shared}, "checked 10000 entries without a server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, text := range c.files {
				processtest.Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".yaml")), []byte(text), 0o600))
			}
			child, err := processtest.Start(providerdtest.Command(t.Context(), dir, "apply", "--dry-run", "-f", "."))
			processtest.Must(t, err)
			mib := providerdtest.WaitPeakKiB(t, child) >> 10
			if output := child.Stdout.String() + child.Stderr.String(); !strings.Contains(output, c.want) {
				t.Errorf("output is %.2000s, want %q", output, c.want)
			}
			t.Logf("%d MiB", mib)
			if mib == 0 || mib > maxMebibytes {
				t.Errorf("peak is %d MiB, want at most %d", mib, maxMebibytes)
			}
		})
	}
}
