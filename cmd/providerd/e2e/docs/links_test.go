package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// documents calls check for each Markdown file of this module, except those of installed packages.
func documents(t *testing.T, check func(path string)) {
	t.Helper()
	root := os.DirFS(providerdtest.Path(t, ""))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git"}, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			check(path)
		}
		return nil
	})
	processtest.Must(t, err)
}

// TestLinks follows the relative links of all Markdown files, and the anchors of their headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	followed := 0
	documents(t, func(path string) {
		for _, link := range links(t, path) {
			followed++
			file, anchor, hasAnchor := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(providerdtest.Path(t, target)); err != nil {
				t.Errorf("%s: link to %s: %v", path, link, err)
			} else if hasAnchor && !anchors(t, target)[anchor] {
				t.Errorf("%s: link to %s: no such heading", path, link)
			}
		}
	})
	if followed < 50 {
		t.Errorf("followed only %d links", followed)
	}
}

// TestDocumentsNameTargets looks up each "make TARGET" and "PROOF=NAME" of the Markdown files.
func TestDocumentsNameTargets(t *testing.T) {
	t.Parallel()
	makefile := providerdtest.ReadFile(t, "Makefile")
	documents(t, func(path string) {
		named := regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(providerdtest.ReadFile(t, path), -1)
		for _, match := range named {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", path, match[1])
			}
		}
		for _, match := range regexp.MustCompile("PROOF=([a-z]+)").FindAllStringSubmatch(providerdtest.ReadFile(t, path), -1) {
			if !strings.Contains(makefile, "\n"+match[1]+" := ") {
				t.Errorf("%s: the Makefile has no proof %s", path, match[1])
			}
		}
	})
}

// prose returns a Markdown file without its blocks of code.
func prose(t *testing.T, path string) string {
	t.Helper()
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(providerdtest.ReadFile(t, path), "")
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
