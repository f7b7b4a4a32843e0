package browsertest

import (
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// shown is a page and texts that it shows.
type shown struct {
	name   string
	path   string // below the address of the world
	status int    // of the answer; 0: 200
	texts  []string
}

// check opens a page on every device, in light and dark.
func check(t *testing.T, address string, s shown) {
	t.Run(s.name, func(t *testing.T) {
		for _, d := range []device{phone, desktop, simple} {
			t.Run(d.name, func(t *testing.T) { checkOn(t, d, address+s.path, s) })
		}
	})
}

func checkOn(t *testing.T, d device, address string, s shown) {
	b := open(t, address, d)
	b.load(t, "checks.js")
	framed := !d.noScript && eval[bool](t, b, `document.querySelector("iframe") !== null`)
	if framed {
		b.wait(t, `frames[0]?.document?.querySelector("#picture svg") != null`)
		require.Zero(t, eval[float64](t, b, "scrollY"), "the picture scrolls its page")
	}
	text := eval[string](t, b, "document.body.innerText")
	for _, want := range s.texts {
		require.Contains(t, text, want)
	}
	b.screenshot(t, "dark")
	b.screenshot(t, "light")
	b.complains(t, "checks.layout()")
	b.complains(t, "checks.ages()")
	b.quiet(t, address, s.status)
	if d.noScript {
		return
	}
	require.Less(t, b.shift(t), 0.05, "the page moves while it loads")
	if d == desktop {
		b.tabs(t, framed)
		b.scheme(t, "dark")
	}
	b.load(t, "axe/axe.min.js") // light on the phone, dark on the desktop
	b.complains(t, "checks.accessible()")
}

// shift returns how much of the page has moved while it loaded. A busy machine may paint a
// table before all its rows have arrived, and that depends on where the answer is cut: the page
// is loaded again then, and the least movement counts.
func (b *tab) shift(t *testing.T) float64 {
	t.Helper()
	least := eval[float64](t, b, "checks.shift()")
	for range 2 {
		if least < 0.05 {
			break
		}
		b.do(t, chromedp.Reload())
		b.load(t, "checks.js")
		b.wait(t, "performance.now() > 4000") // the first refresh of live.js is over
		least = min(least, eval[float64](t, b, "checks.shift()"))
	}
	return least
}

// load runs a script of testdata in the page. The policy of the page does not apply to it.
func (b *tab) load(t *testing.T, name string) {
	t.Helper()
	script, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	eval[any](t, b, string(script)+"\n;0")
}

// complains asserts that a check finds nothing.
func (b *tab) complains(t *testing.T, check string) {
	t.Helper()
	require.Empty(t, eval[[]string](t, b, check), "%s", check)
}

// tabs asserts that the key Tab reaches everything that can be used, and the frame with the
// picture, and that the focus can be seen.
func (b *tab) tabs(t *testing.T, framed bool) {
	t.Helper()
	type focus struct {
		Reach   int  `json:"reach"`
		Frame   bool `json:"frame"`
		Visible bool `json:"visible"`
	}
	missing := map[int]string{}
	for i, name := range eval[[]string](t, b, "checks.focusable()") {
		missing[i] = name
	}
	entered := false
	for range 2*len(missing) + 100 { // the frame has links too
		if len(missing) == 0 && entered == framed {
			return
		}
		b.do(t, chromedp.KeyEvent(kb.Tab))
		f := eval[focus](t, b, "checks.focused()")
		entered = entered || f.Frame
		if _, ok := missing[f.Reach]; ok {
			require.True(t, f.Visible, "the focus on %s cannot be seen", missing[f.Reach])
			delete(missing, f.Reach)
		}
	}
	require.Empty(t, missing, "the keyboard does not reach")
	require.Equal(t, framed, entered, "the keyboard does not reach the picture")
}

func TestPublishedTable(t *testing.T) {
	t.Parallel()
	address := published(t, ironic, numbered("node-%03d", 200))
	check(t, address, shown{name: "overview", texts: []string{"Bare metal, region west", "openstack-ironic-provision", "200"}})
	check(t, address, shown{name: "machine", path: "machine?machine=openstack-ironic-provision", texts: []string{"clean failed", "manageable"}})
	check(t, address, shown{name: "objects", path: "objects?machine=openstack-ironic-provision", texts: []string{"node-000", "node-099"}})
	check(t, address, shown{name: "object", path: "object?machine=openstack-ironic-provision&id=node-007", texts: []string{"node-007", "operator"}})
}

func TestManyObjects(t *testing.T) {
	t.Parallel()
	address := many(t)
	check(t, address, shown{name: "overview", texts: []string{"vm", "10000"}})
	check(t, address, shown{name: "machine", path: "machine?machine=vm", texts: []string{"6000"}})
	check(t, address, shown{name: "objects", path: "objects?machine=vm&state=broken", texts: []string{"vm-00004"}})
}

func TestStuckFleet(t *testing.T) {
	t.Parallel()
	address, store := fleet(t)
	check(t, address, shown{name: "overview", texts: []string{"14", "stuck"}})
	check(t, address, shown{name: "machine", path: "machine?machine=vm", texts: []string{"vm-000", "deadline"}})
	check(t, address, shown{name: "stuck", path: "objects?machine=vm&stuck=1", texts: []string{"vm-000"}})
	check(t, address, shown{name: "object", path: "object?machine=vm&id=vm-000", texts: []string{"ticket 4711"}})
	check(t, address, shown{name: "queues", path: "queues", texts: []string{"hosts/rack-01"}})
	check(t, address, shown{name: "locks", path: "locks", texts: []string{"rack-01/host-3"}})
	check(t, address, shown{name: "owners", path: "owners", texts: []string{"controller-1", "alive", "controller-2"}})
	check(t, address, shown{name: "unknown", path: "object?machine=vm&id=nothing", status: 404, texts: []string{"nothing"}})
	store.down.Store(true)
	check(t, address, shown{name: "outage", path: "machine?machine=vm", status: 503, texts: []string{"unavailable"}})
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	address := hostileWorld(t)
	machine := "machine=" + url.QueryEscape(hostile[0])
	check(t, address, shown{name: "overview", texts: hostile[:1]})
	check(t, address, shown{name: "machine", path: "machine?" + machine, texts: hostile[:1]})
	check(t, address, shown{name: "objects", path: "objects?" + machine, texts: hostile[1:3]})
	check(t, address, shown{name: "object", path: "object?" + machine + "&id=" + url.QueryEscape(hostile[1]), texts: hostile[:2]})
}

// TestPictures opens the picture of every table alone.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, address := range pictures(t) {
		for _, d := range []device{phone, desktop} {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				b := open(t, address, d)
				b.load(t, "checks.js")
				b.wait(t, `document.querySelector("#picture svg") != null`)
				b.screenshot(t, "dark")
				b.screenshot(t, "light")
				b.complains(t, "checks.picture()")
				b.complains(t, "checks.layout()")
				b.quiet(t, address, 200)
				b.tabs(t, false)
				require.True(t, eval[bool](t, b, "checks.fits()"), "the button Fit does not show the whole picture")
				b.load(t, "axe/axe.min.js")
				b.complains(t, "checks.accessible()")
			})
		}
	}
}
