// Package browsertest opens the operator's page in Chromium, and checks what a person sees:
// text, layout, pictures, keyboard, accessibility, and that no page breaks its own policy.
//
// Screenshots of all pages are written into a directory on request:
//
//	make browser SHOTS=/tmp/shots
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is the context of the one Chromium of all tests. Every tab has a browser context
// of its own: no cache, no storage of another test.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path := chromium()
	if path == "" {
		if os.Getenv("REQUIRE_BROWSER") == "1" || os.Getenv("REQUIRE_ENGINES") == "1" {
			fmt.Fprintln(os.Stderr, "FAIL: Chromium is missing, and REQUIRE_BROWSER or REQUIRE_ENGINES is 1: install it, or name it in INTERLOCK_CHROMIUM")
			return 1
		}
		fmt.Println("SKIP: Chromium is missing: the operator's page was not tested in a browser")
		return 0
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // root has no sandbox; the pages are this repository's
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, stop = chromedp.NewContext(ctx)
	defer stop()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: start Chromium:", err)
		return 1
	}
	return m.Run()
}

// chromium returns the path of the program, or "".
func chromium() string {
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if name := os.Getenv("INTERLOCK_CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// do runs the actions in the tab.
func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	require.NoError(t, chromedp.Do(ctx, steps...))
}

// eval returns the value of a JavaScript expression, or of the promise that it is.
func eval[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return value
}

// wait waits until a JavaScript expression is true.
func (b *tab) wait(t *testing.T, expression string) {
	t.Helper()
	b.do(t, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(0)))
}

// call runs a command of the protocol in the tab.
func call[P, R any](t *testing.T, b *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	_, err := chromedp.Call(ctx, command, params)
	require.NoError(t, err)
}
