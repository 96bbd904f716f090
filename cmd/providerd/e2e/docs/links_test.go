package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestLinks follows the relative links of all Markdown files, and the anchors of their headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := providerdtest.Path(t, "")
	followed := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return skip(err)
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		for _, link := range links(t, path) {
			followed++
			file, anchor, hasAnchor := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", path, link, err)
			} else if hasAnchor && !anchors(t, target)[anchor] {
				t.Errorf("%s: link to %s: no such heading", path, link)
			}
		}
		return nil
	})
	if err != nil || followed < 50 {
		t.Errorf("followed %d links, %v", followed, err)
	}
}

// skip skips a directory unless it could not be read.
func skip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// prose returns a Markdown file without its blocks of code.
func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(string(text), "")
}

// links returns the targets of the links and images of a file, except those on other hosts.
func links(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	text := regexp.MustCompile("`[^`\n]+`").ReplaceAllString(prose(t, path), "code")
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(match[1], "://") {
			found = append(found, match[1])
		}
	}
	return found
}

// anchors returns the anchors that code hosts give the headings of a file.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(t, path), -1) {
		kept := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(kept, " ", "-")] = true
	}
	return found
}
