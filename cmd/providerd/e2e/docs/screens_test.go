//go:build slow

package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"example.com/providerd/cmd/providerd/manual/manualtest"
	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestPagesFitScreens opens each kind of page on a phone and on a desktop, one in dark and the other in light, and then
// in the other color scheme. If UPDATE is set, the manual gets a screenshot of the reference page.
func TestPagesFitScreens(t *testing.T) {
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	b := openBrowser(t, server.URL)
	for path, ready := range map[string]string{
		"/":                           "h1",
		"/advice/":                    "h1",
		"/conventions/":               "h2",
		"/problems/":                  "h1",
		"/problems/validation-failed": "pre",
		"/docs/":                      operationBlock + " .request-card",
		"/manual/postgres.md":         "pre button",
	} {
		url := b.url
		if strings.HasPrefix(path, "/manual/") {
			url = named(ops)
		}
		for width, schemes := range map[int64][]string{390: {"dark", "light"}, 1280: {"light", "dark"}} {
			b.run(t,
				emulation.SetDeviceMetricsOverride(width, 900, 1, width < 1000),
				prefer(schemes[0]),
				chromedp.Navigate(url+path),
				await(fmt.Sprintf("document.querySelector(%q) !== null", ready)),
				await("[...document.images].every((image) => image.naturalWidth > 0)"),
			)
			b.checkPage(t, path, width)
			if path == "/docs/" && width > 1000 && os.Getenv(manualtest.UpdateVariable) != "" {
				var screenshot []byte
				b.run(t, chromedp.CaptureScreenshot(&screenshot))
				processtest.Must(t, os.WriteFile(providerdtest.Path(t, "cmd/providerd/manual/docs.png"), screenshot, 0o600))
			}
			const background = "getComputedStyle(document.body).backgroundColor"
			var first string
			b.run(t, chromedp.Evaluate(background, &first), prefer(schemes[1]), await(fmt.Sprintf("%s !== %q", background, first)))
			b.checkPage(t, path, width)
			if strings.Contains(ready, "pre") {
				b.checkCopying(t)
			}
		}
	}
	if faults := b.recorded(); len(faults) > 0 {
		t.Errorf("faults in the browser: %v", faults)
	}
}

// checkCopying checks that a button copies the text next to it, without its own label.
func (b *browser) checkCopying(t *testing.T) {
	t.Helper()
	var label, copied, text string
	b.run(t,
		chromedp.Click("pre button", chromedp.ByQuery),
		chromedp.Text("pre button", &label, chromedp.ByQuery),
		chromedp.Evaluate("getSelection().toString()", &copied),
		chromedp.Evaluate(`[...document.querySelector("pre").childNodes].slice(1).map((node) => node.textContent).join("")`, &text),
	)
	processtest.Expect(t, label == "Copied" && copied == strings.TrimSuffix(text, "\n") && copied != "",
		"%s: %q is copied of %q", label, copied, text)
}

// prefer sets the color scheme that the user prefers.
func prefer(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}

// checkPage checks that a page is not wider than the screen and that the first operation is on the first screen.
func (b *browser) checkPage(t *testing.T, path string, width int64) {
	t.Helper()
	var scrollWidth int64
	b.run(t, chromedp.Evaluate("document.documentElement.scrollWidth", &scrollWidth))
	processtest.Expect(t, scrollWidth <= width, "%s is %d pixels wide on a screen of %d", path, scrollWidth, width)
	if path == "/docs/" {
		// The height of a small phone's screen, in pixels.
		const firstScreen = 700
		var top float64
		b.run(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().top + scrollY`,
			operationBlock+" :is(h2, h3)"), &top))
		processtest.Expect(t, top <= firstScreen, "the first operation begins %.0f pixels down", top)
		var isBodyFirst bool
		b.run(t, chromedp.Evaluate(fmt.Sprintf(`((top) => top(".request-body") < top(".response-card") && top(".response-card") < top("[class*=responses-]"))(
			(part) => document.querySelector(%q + " " + part).getBoundingClientRect().top)`, operationBlock), &isBodyFirst))
		processtest.Expect(t, width >= 1000 || isBodyFirst, "responses precede the fields of the body")
	}
}
