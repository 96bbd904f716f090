//go:build browser

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is headless Chromium, which notes what a user would not see.
type browser struct {
	ctx   context.Context
	mutex sync.Mutex
	// complaints are errors on the console and requests to other servers.
	complaints []string
}

// openBrowser starts Debian's Chromium. It may load from this server alone.
func openBrowser(t *testing.T, serverURL string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.WindowSize(1200, 1600))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) { b.note(event, serverURL) })
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatalf("start Chromium (from Debian's package chromium): %v", err)
	}
	return b
}

func (b *browser) note(event any, serverURL string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := event.Request.URL; !strings.HasPrefix(url, serverURL+"/") && !strings.HasPrefix(url, "data:") {
			b.complaints = append(b.complaints, "request to "+url)
		}
	case *log.EventEntryAdded:
		// Chromium logs each answer of 400 as an error of its own.
		if event.Entry.Level == log.LevelError && event.Entry.Source != log.SourceNetwork {
			b.complaints = append(b.complaints, event.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.APITypeError {
			b.complaints = append(b.complaints, fmt.Sprint("console: ", len(event.Args), " arguments"))
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, event.ExceptionDetails.Error())
	}
}

func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		t.Fatal(errors.Join(err, fmt.Errorf("the browser complains: %v", b.heard())))
	}
}

func (b *browser) heard() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.complaints)
}

// The part of the page that is about the operation, and its field for the body.
const (
	operationBlock = "#operations-providers-providers_oauth2_create"
	bodyField      = operationBlock + " textarea.body-param__text"
)

// click waits for an element and clicks it, wherever it moves while the page unfolds.
func click(selector string) chromedp.Tasks {
	element := fmt.Sprintf("document.querySelector(%q)", selector)
	return chromedp.Tasks{await(element + " !== null"), chromedp.Evaluate(element+".click()", nil)}
}

// await waits until an expression is true.
func await(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(readyTimeout))
}

// awaitAnswer waits for an answer of this status and reads it.
func awaitAnswer(status int, answer *string) chromedp.Tasks {
	row := fmt.Sprintf("document.querySelector(%q)", operationBlock+" .live-responses-table tbody tr")
	return chromedp.Tasks{
		await(fmt.Sprintf(`%s?.innerText.startsWith("%d")`, row, status)),
		chromedp.Evaluate(row+".innerText", answer),
	}
}

// setBody writes a body into the field, as typing would.
func setBody(body string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, %q);
		field.dispatchEvent(new Event("input", {bubbles: true}));
	})()`, bodyField, body), nil)
}

// TestReferencePage reads, authorizes and tries out in a browser, as a newcomer would.
func TestReferencePage(t *testing.T) {
	folder := t.TempDir()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(folder, "data", initialTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, server.url)
	var answer string
	var screenshot []byte
	b.run(t,
		chromedp.Navigate(server.url+"/docs/"),
		click(".btn.authorize"),
		chromedp.SendKeys(".auth-container input", strings.TrimSpace(string(token))),
		click(".auth-btn-wrapper .authorize"),
		click(".auth-btn-wrapper .btn-done"),
		click(operationBlock+" .opblock-summary-control"),
		// The field for the body comes later than the button, with an example in it.
		await(fmt.Sprintf(`document.querySelector(%q)?.value.startsWith("{")`, bodyField)),
		click(operationBlock+" .execute"),
		awaitAnswer(http.StatusCreated, &answer),
		chromedp.FullScreenshot(&screenshot, 100),
	)
	if !strings.Contains(answer, `"client_secret"`) {
		t.Errorf("trying it out gives %s", answer)
	}
	b.run(t,
		setBody(`{"name": " ", "sub_mode": "x"}`),
		click(operationBlock+" .execute"),
		awaitAnswer(http.StatusBadRequest, &answer),
	)
	for _, part := range []string{"/name", "/sub_mode", "/authorization_flow", "validation-failed"} {
		if !strings.Contains(answer, part) {
			t.Errorf("%q is not in %s", part, answer)
		}
	}
	if complaints := b.heard(); len(complaints) > 0 {
		t.Errorf("the browser complains: %v", complaints)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "docs.png"), screenshot, 0o600); err != nil {
		t.Error(err)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if pks := storedPKs(t, folder); len(pks) != 1 {
		t.Errorf("stored are %v, want the one record", pks)
	}
}
