//go:build slow

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPagesOnAPhone looks at each kind of page on a screen of 400 pixels, by day and by night.
func TestPagesOnAPhone(t *testing.T) {
	_, b, _ := startPages(t, t.TempDir())
	for path, ready := range map[string]string{
		"/":                           "h1",
		"/advice/":                    "h1",
		"/conventions/":               "h2",
		"/problems/":                  "h1",
		"/problems/validation-failed": "pre",
		"/docs/":                      operationBlock,
	} {
		backgrounds := map[string]bool{}
		for _, scheme := range []string{"light", "dark"} {
			var width int
			var operationTop float64
			var background string
			var screenshot []byte
			b.run(t,
				emulation.SetDeviceMetricsOverride(400, 900, 1, true),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme},
				}),
				chromedp.Navigate(b.url+path),
				await(fmt.Sprintf("document.querySelector(%q) !== null", ready)),
				chromedp.Evaluate("document.documentElement.scrollWidth", &width),
				chromedp.Evaluate("getComputedStyle(document.body).backgroundColor", &background),
				chromedp.FullScreenshot(&screenshot, 100),
			)
			if path == "/docs/" {
				b.run(t, chromedp.Evaluate(fmt.Sprintf(
					`document.querySelector("%s h2, %[1]s h3").getBoundingClientRect().top + scrollY`, "section[id*='POST/']"), &operationTop))
			}
			if operationTop > 700 {
				t.Errorf("the first operation begins %.0f pixels down", operationTop)
			}
			backgrounds[background] = true
			if width > 400 {
				t.Errorf("%s is %d pixels wide", path, width)
			}
			name := strings.Trim(strings.ReplaceAll(path, "/", "-"), "-") + "-" + scheme + ".png"
			if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), screenshot, 0o600); err != nil {
				t.Error(err)
			}
		}
		if len(backgrounds) != 2 {
			t.Errorf("%s looks alike by day and by night: %v", path, backgrounds)
		}
	}
	if complaints := b.heard(); len(complaints) > 0 {
		t.Errorf("the browser complains: %v", complaints)
	}
}
