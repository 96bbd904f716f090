package figures_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
)

// TestCharts checks that charts are well-formed and stay within their width.
func TestCharts(t *testing.T) {
	t.Parallel()
	second := func(count int) time.Duration { return time.Duration(count) * time.Second }
	curves := []figures.Curve{
		{Name: "first", Parts: [][]figures.Point{{{second(0), 1}, {second(9), 70}}, {{second(10), 3}}}},
		{Name: "second"},
	}
	for name, test := range map[string]struct {
		svg  string
		want []string
	}{
		"bars": {
			figures.Bars{Title: "title", Series: []string{"a", "b"}, Groups: []figures.Group{{"one", []float64{0, 2.5}}}}.SVG(),
			[]string{">title<", "■ b<", ">one<", ">2.5<", `width="640"`},
		},
		"lines": {
			figures.Lines{Length: second(10), Marks: []figures.Mark{{"restart", second(4), second(5)}}, Panels: []figures.Panel{
				{Title: "linear", Curves: curves}, {Title: "logarithmic", Least: 0.1, Curves: curves}, {Title: "empty"},
			}}.SVG(),
			[]string{">restart<", ">80<", ">100<", "■ second<", ">10 s<", `points="64.0,`},
		},
	} {
		for decoder := xml.NewDecoder(strings.NewReader(test.svg)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in %s", name, err, test.svg)
			}
		}
		for _, want := range test.want {
			if !strings.Contains(test.svg, want) {
				t.Errorf("%s: %s is missing in %s", name, want, test.svg)
			}
		}
	}
}

// TestPut replaces only what is between two comments.
func TestPut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "README.md")
	const before, after = "a\n<!-- figures: mine -->\n", "<!-- end of figures -->\nb\n"
	if err := os.WriteFile(path, []byte(before+"old\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := figures.Put(path, "figures: mine", "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != before+"\nnew\n\n"+after {
		t.Errorf("README is %q", got)
	}
	if err := figures.Put(path, "figures: yours", "new\n"); err == nil {
		t.Error("no error for a missing title")
	}
}
