//go:build slow

package docs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

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

// openBrowser starts Chromium for pages of a server. Requests to other servers are faults.
func openBrowser(t *testing.T, serverURL string) *browser {
	t.Helper()
	processtest.NeedPrograms(t, "chromium", "chromium")
	const name = "providerd.example.com"
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.WindowSize(1200, 1600),
		chromedp.Flag("host-resolver-rules", "MAP "+name+" 127.0.0.1"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, processtest.Timeout)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx, url: strings.Replace(serverURL, "127.0.0.1", name, 1)}
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
		if url := event.Request.URL; !strings.HasPrefix(url, b.url+"/") && !strings.HasPrefix(url, "data:") {
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
