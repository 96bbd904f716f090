//go:build slow

package docs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"example.com/providerd/cmd/providerd/manual/manualtest"
	"example.com/providerd/cmd/providerd/providerdtest"
)

// firstScreen is the height of a small phone's screen, in pixels.
const firstScreen = 700

// TestPagesFitScreens opens each kind of page on a phone and on a desktop, in light and dark. If UPDATE is set, the
// manual gets a screenshot of the reference page.
func TestPagesFitScreens(t *testing.T) {
	_, b, _ := startPages(t, t.TempDir())
	for path, ready := range map[string]string{
		"/":                           "h1",
		"/advice/":                    "h1",
		"/conventions/":               "h2",
		"/problems/":                  "h1",
		"/problems/validation-failed": "pre",
		"/docs/":                      operationBlock + " .request-card",
	} {
		for _, width := range []int64{400, 1280} {
			b.run(t,
				emulation.SetDeviceMetricsOverride(width, 900, 1, width < 1000),
				chromedp.Navigate(b.url+path),
				await(fmt.Sprintf("document.querySelector(%q) !== null", ready)),
			)
			backgrounds := map[string]bool{}
			for _, scheme := range []string{"light", "dark"} {
				b.run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme},
				}))
				backgrounds[b.checkPage(t, path, width)] = true
				if path == "/docs/" && width > 1000 && scheme == "light" && os.Getenv(manualtest.UpdateVariable) != "" {
					b.saveScreenshot(t, providerdtest.Path(t, "cmd/providerd/manual/docs.png"))
				}
			}
			if len(backgrounds) != 2 {
				t.Errorf("%s looks the same in light and dark: %v", path, backgrounds)
			}
		}
	}
	if faults := b.recorded(); len(faults) > 0 {
		t.Errorf("faults in the browser: %v", faults)
	}
}

// checkPage checks that a page is not wider than the screen and that the first operation is on the first screen. It
// returns the background color.
func (b *browser) checkPage(t *testing.T, path string, width int64) string {
	t.Helper()
	var scrollWidth int64
	var background string
	b.run(t,
		chromedp.Evaluate("document.documentElement.scrollWidth", &scrollWidth),
		chromedp.Evaluate("getComputedStyle(document.body).backgroundColor", &background),
	)
	if scrollWidth > width {
		t.Errorf("%s is %d pixels wide on a screen of %d", path, scrollWidth, width)
	}
	if path == "/docs/" {
		var top float64
		b.run(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().top + scrollY`,
			operationBlock+" :is(h2, h3)"), &top))
		if top > firstScreen {
			t.Errorf("the first operation begins %.0f pixels down", top)
		}
	}
	return background
}

func (b *browser) saveScreenshot(t *testing.T, path string) {
	t.Helper()
	var screenshot []byte
	b.run(t, chromedp.CaptureScreenshot(&screenshot))
	if err := os.WriteFile(path, screenshot, 0o600); err != nil {
		t.Error(err)
	}
}
