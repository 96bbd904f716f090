//go:build slow

package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// browser is headless Chromium. It records what a user would not see.
type browser struct {
	ctx context.Context
	// url names the server by a hostname, because a page may contact other servers unless it is local.
	url   string
	mutex sync.Mutex
	// faults are errors on the console and requests to other servers.
	faults []string
}

const hostname = "providerd.example.com"

// named returns the URL of a server by its hostname.
func named(url string) string { return strings.Replace(url, "127.0.0.1", hostname, 1) }

// openBrowser starts Chromium for pages of a server. Requests to other servers are faults.
func openBrowser(t *testing.T, serverURL string) *browser {
	t.Helper()
	processtest.NeedPrograms(t, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.WindowSize(1200, 1600),
		chromedp.Flag("host-resolver-rules", "MAP "+hostname+" 127.0.0.1"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, processtest.Timeout)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx, url: named(serverURL)}
	chromedp.ListenTarget(ctx, b.record)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

func (b *browser) record(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := event.Request.URL; !strings.HasPrefix(url, named("http://127.0.0.1:")) && !strings.HasPrefix(url, "data:") {
			b.faults = append(b.faults, "request to "+url)
		}
	case *log.EventEntryAdded:
		// Chromium logs each response of 400 as an error.
		if event.Entry.Level == log.LevelError && event.Entry.Source != log.SourceNetwork {
			b.faults = append(b.faults, event.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.APITypeError {
			b.faults = append(b.faults, fmt.Sprint("console: ", len(event.Args), " arguments"))
		}
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, event.ExceptionDetails.Error())
	}
}

func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		t.Fatal(errors.Join(err, fmt.Errorf("faults in the browser: %v", b.recorded())))
	}
}

func (b *browser) recorded() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.faults)
}

// click waits for an element and clicks it, even if it moves while the page loads.
func click(selector string) chromedp.Tasks {
	element := fmt.Sprintf("document.querySelector(%q)", selector)
	return chromedp.Tasks{await(element + " !== null"), chromedp.Evaluate(element+".click()", nil)}
}

// await waits until an expression is true.
func await(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(processtest.Timeout))
}

const (
	// The section of the reference page about an operation, its form to send requests, and the field for the body.
	operationBlock = `section[id$="POST/providers/oauth2/"]`
	tryForm        = `.scalar-client[role="dialog"]`
	bodyField      = tryForm + ` .cm-content[contenteditable="true"]`
)

// send submits the form, waits for a response with the status, and reads it.
func send(status int, response *string) chromedp.Tasks {
	text := fmt.Sprintf("document.querySelector(%q).innerText", tryForm)
	return chromedp.Tasks{
		chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(%q)]
			.find((button) => button.innerText.includes("Send post request")).click()`, tryForm+" button"), nil),
		await(fmt.Sprintf(`/Status:\s*%d/.test(%s)`, status, text)),
		chromedp.Evaluate(text, response),
	}
}

// setBody types a body into the field.
func setBody(body string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`
		document.querySelector(%q).focus();
		document.execCommand("selectAll");
		document.execCommand("insertText", false, %q);
	`, bodyField, body), nil)
}

// TestReferencePage reads about an operation, authorizes and sends requests in a browser.
func TestReferencePage(t *testing.T) {
	server := providerdtest.Serve(t, t.TempDir())
	b := openBrowser(t, server.URL)
	b.run(t,
		chromedp.Navigate(b.url+"/docs/"),
		await(fmt.Sprintf("document.querySelector(%q) !== null", operationBlock)),
	)
	readOperation(t, b)
	var values []string
	var response string
	b.run(t,
		chromedp.SendKeys(`.scalar-app input[placeholder="Token"]`, providerdtest.Token(t, server.Dir)),
		click(operationBlock+" .show-api-client-button"),
		await(fmt.Sprintf(`document.querySelector(%q)?.innerText.startsWith("{")`, bodyField)),
		chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(%q)].map((value) => value.innerText.trim())`,
			tryForm+` .code-input-lite__editor[aria-label$="Value"]`), &values),
		// The form validates until the reader switches it off.
		send(http.StatusOK, &response),
		click(tryForm+` input[aria-label="Include validate_only in request"]`),
		send(http.StatusCreated, &response),
	)
	if prefilled := strings.Join(values, ""); len(values) < 2 || prefilled != "" {
		t.Errorf("%d headers are prefilled with %q, want none", len(values), prefilled)
	}
	processtest.Contains(t, response, `"client_secret"`)
	b.run(t, setBody(`{"name": " ", "sub_mode": "x", "redirect_uri": ""}`), send(http.StatusBadRequest, &response))
	for _, part := range []string{"/name", "/sub_mode", "/authorization_flow", "/redirect_uri", "validation-failed"} {
		processtest.Contains(t, response, part)
	}
	b.run(t,
		setBody(`{"name": "Another", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`),
		send(http.StatusCreated, &response),
	)
	if faults := b.recorded(); len(faults) > 0 {
		t.Errorf("faults in the browser: %v", faults)
	}
	server.Stop(t)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, server.Dir)), 2, "stored providers")
}

// readOperation reads the fields and the samples of an operation, and which response is shown first.
func readOperation(t *testing.T, b *browser) {
	t.Helper()
	var operations, introduction int
	var fields, sample, responses string
	var labels []string
	picker := operationBlock + ` [data-testid="client-picker"]`
	b.run(t,
		await(`document.querySelectorAll("section[id*='POST/providers/']").length === 2`),
		chromedp.Evaluate(`document.querySelectorAll(".request-card").length`, &operations),
		chromedp.Evaluate(`document.querySelector(".introduction-description").innerText.length`, &introduction),
		click(picker),
		await(`document.querySelectorAll("[role=option]").length > 0`),
		chromedp.Evaluate(`[...document.querySelectorAll("[role=option]")].map((option) => option.innerText.trim())`, &labels),
		chromedp.Evaluate(`[...document.querySelectorAll("[role=option]")].find((option) => /Go/.test(option.innerText)).click()`, nil),
		await(fmt.Sprintf(`document.querySelector(%q).innerText.includes("package main")`, operationBlock+" .request-card")),
		chromedp.Text(operationBlock+" .request-card", &sample, chromedp.ByQuery),
		chromedp.Text(operationBlock, &fields, chromedp.ByQuery),
		chromedp.Text(operationBlock+" .response-card", &responses, chromedp.ByQuery),
	)
	processtest.Expect(t, operations == 2 && introduction <= 250,
		"%d operations are open, want 2, after an introduction of %d characters", operations, introduction)
	if want := []string{"curl", "Go", "TypeScript"}; !slices.Equal(labels, want) || !strings.Contains(sample, `client.New("`+b.url) {
		t.Errorf("samples are %v, want %v; that in Go is %s", labels, want, sample)
	}
	processtest.Expect(t, strings.HasPrefix(responses, "STATUS:\n201\n") && strings.Contains(responses, `"client_secret"`),
		"the response shown first is %s", responses)
	for _, part := range []string{"redirect_uris", "One URI per line", "issuer_mode", "per_provider", "jwks_sources"} {
		processtest.Expect(t, strings.Contains(fields, part), "%q is not visible without a click", part)
	}
}
