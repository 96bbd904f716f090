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

	"example.com/providerd/cmd/providerd/providerdtest"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is headless Chromium, which notes what a user would not see.
type browser struct {
	ctx context.Context
	// url is the server's, by a name as a server has it elsewhere: a page may ask others for help where it is not local.
	url   string
	mutex sync.Mutex
	// complaints are errors on the console and requests to other servers.
	complaints []string
}

// openBrowser starts Debian's Chromium. It may load from this server alone.
func openBrowser(t *testing.T, serverURL string) *browser {
	t.Helper()
	providerdtest.NeedPrograms(t, "browser", "chromium")
	const name = "providerd.example.com"
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.WindowSize(1200, 1600),
		chromedp.Flag("host-resolver-rules", "MAP "+name+" 127.0.0.1"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, providerdtest.ReadyTimeout)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx, url: strings.Replace(serverURL, "127.0.0.1", name, 1)}
	chromedp.ListenTarget(ctx, b.note)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

func (b *browser) note(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := event.Request.URL; !strings.HasPrefix(url, b.url+"/") && !strings.HasPrefix(url, "data:") {
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

// click waits for an element and clicks it, wherever it moves while the page unfolds.
func click(selector string) chromedp.Tasks {
	element := fmt.Sprintf("document.querySelector(%q)", selector)
	return chromedp.Tasks{await(element + " !== null"), chromedp.Evaluate(element+".click()", nil)}
}

// await waits until an expression is true.
func await(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(providerdtest.ReadyTimeout))
}
