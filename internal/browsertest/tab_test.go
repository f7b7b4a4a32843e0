package browsertest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// device is what a page is opened on.
type device struct {
	name     string
	width    int64 // CSS pixels
	noScript bool
}

var (
	phone   = device{name: "phone", width: 360}
	desktop = device{name: "desktop", width: 1280}
	simple  = device{name: "without-scripts", width: 360, noScript: true}
)

// tab is a tab of the browser. It records what its pages do.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	messages []string // errors and warnings of the console, CSP violations included
	requests []string // addresses
}

// open opens an address in a new tab, and closes the tab at the end of the test.
func open(t *testing.T, address string, d device) *tab {
	t.Helper()
	b := &tab{}
	ctx, stop := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	b.ctx = ctx
	require.NoError(t, chromedp.Listen(ctx, b.record))
	b.scheme(t, "light")
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: d.width, Height: 800, DeviceScaleFactor: 1, Mobile: d == phone,
	})
	if d.noScript {
		call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	b.do(t, chromedp.Navigate(address))
	return b
}

// scheme chooses the colours: "light" or "dark".
func (b *tab) scheme(t *testing.T, name string) {
	t.Helper()
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// record is called for every event of the tab.
func (b *tab) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.messages = append(b.messages, string(e.Type)+": "+arg.Description+string(arg.Value))
		}
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.messages = append(b.messages, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
	}
}

// quiet asserts that the console has no message and that every request was one of the same
// origin. A message may name the page's own answer if its status is an error.
func (b *tab) quiet(t *testing.T, address string, status int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if status >= 400 && strings.Contains(m, "Failed to load resource") && strings.HasSuffix(m, address) {
			continue
		}
		require.Fail(t, "a message in the console", m)
	}
	page, err := url.Parse(address)
	require.NoError(t, err)
	require.NotEmpty(t, b.requests)
	for _, r := range b.requests {
		u, err := url.Parse(r)
		require.NoError(t, err)
		require.Equal(t, page.Host, u.Host, "a request to another origin: %s", r)
	}
}

// screenshot writes the whole page into the directory SHOTS, under the name of the test.
func (b *tab) screenshot(t *testing.T, scheme string) {
	t.Helper()
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	b.scheme(t, scheme)
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	file := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+"-"+scheme+".png")
	require.NoError(t, os.WriteFile(file, png, 0o644))
}
