package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Harness says how to get at the stores that are tested. New is required; the
// zero value of every other field is a default. It is a value and may be copied.
type Harness struct {
	// New returns a fresh, empty store, which shares nothing with any that it
	// returned before. The suite calls it once for every demand, and closes
	// stores that implement [io.Closer] when the test ends; what else is to be
	// cleaned up, New leaves to t.Cleanup. It fails the test if it cannot.
	New func(t testing.TB) lifecycle.Store

	// Synctest says that the store does no I/O and lives by the clock of this
	// process. What is demanded of ages and deadlines then runs in a bubble of
	// testing/synctest, where an hour is over at once.
	Synctest bool

	// Age lets d pass on the store's own clock; moving everything that is
	// stored d into the past does as well. Nil, without Synctest: only what can
	// be said of the time that really passes is demanded.
	Age func(t testing.TB, store lifecycle.Store, d time.Duration)

	// Reopen ends the store, as orderly or as rudely as the harness likes, and
	// returns another one over what is left. Nil: nothing is demanded of what
	// survives.
	Reopen func(t testing.TB, store lifecycle.Store) lifecycle.Store

	// Through returns a fresh, empty store as New does, whose connections to its
	// engine all go through the proxy: it calls [Proxy.To] with the engine's
	// address, and opens the store at [Proxy.Addr]. Nil: nothing is demanded of
	// lost answers and cut connections.
	Through func(t testing.TB, proxy *Proxy) lifecycle.Store

	// Restart kills the engine below a store, as rudely as the harness likes, and
	// starts it again over what it has kept. The store stays open, and other
	// goroutines use it meanwhile. Nil: nothing is demanded of that.
	Restart func(t testing.TB, store lifecycle.Store)

	// WrongClock says that New and the store work in a bubble of
	// testing/synctest although the engine is outside of it: there the clock of
	// this process says the year 2000. It is of use for a store that declares
	// OwnClock. False: a clock that is wrong is not tried.
	WrongClock bool

	// Groups are the groups of demands that Run runs, by what stands before the
	// slash in their names; one that there is not is a panic. Nil: all of them.
	Groups []string

	// Attempts is how often each of 64 goroutines tries to move one object, and
	// the measure of every other demand with concurrent callers. 0: 100.
	Attempts int

	// Sequences is how many random sequences of calls are compared with a
	// model. 0: 40.
	Sequences int

	// Seed is where the random sequences begin, to repeat what failed. 0: a new
	// seed every time; a failure tells it.
	Seed uint64

	// patience is how long what must come is waited for, in the tests of this
	// package. 0: a minute.
	patience time.Duration
}

// Run tests a store: one subtest for every demand, named as in the package's
// documentation. Demands that need a capability which the store does not declare,
// or a function which the harness does not have, are skipped, and say so.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		panic("storetest: Run needs a Harness with New")
	}
	rest := h.demands()
	for len(rest) > 0 {
		group, n := rest[0].group(), 0
		for n < len(rest) && rest[n].group() == group {
			n++
		}
		now := rest[:n]
		rest = rest[n:]
		t.Run(group, func(t *testing.T) {
			for _, d := range now {
				_, name, _ := strings.Cut(d.name, "/")
				t.Run(name, func(t *testing.T) {
					d.inTime(t, &h, func(t testing.TB, bubble bool) { d.try(t, &h, bubble) })
				})
			}
		})
	}
}

// demands are those that Run runs.
func (h *Harness) demands() []demand {
	all := demands()
	for _, g := range h.Groups {
		if !slices.ContainsFunc(all, func(d demand) bool { return d.group() == g }) {
			panic(fmt.Sprintf("storetest: there is no group %q of demands", g))
		}
	}
	if h.Groups == nil {
		return all
	}
	return slices.DeleteFunc(all, func(d demand) bool { return !slices.Contains(h.Groups, d.group()) })
}

// demand is one thing that the contract asks of a store.
type demand struct {
	name    string // group/what_is_demanded: the name of the subtest
	says    string // the same as a sentence, for the documentation
	needs   need
	changes int  // how many changes and preconditions its commits have; 0: one
	timed   bool // it runs in a bubble where the harness allows it
	wrong   bool // it runs in a bubble that the engine is outside of
	run     func(t *trial)
}

func (d *demand) group() string {
	group, _, _ := strings.Cut(d.name, "/")
	return group
}

// need is what a demand cannot be tested without.
type need uint8

const (
	needHistory need = 1 << iota
	needMessages
	needCloser
	needReopen
	needThrough
	needRestart
	needOwnClock
)

// missing says what the store or the harness lacks, nothing if all is there.
func (d *demand) missing(store lifecycle.Store, h *Harness) string {
	has := store.Capabilities()
	_, closes := store.(io.Closer)
	switch {
	case d.needs&needHistory != 0 && !has.History:
		return "the store declares no History"
	case d.needs&needMessages != 0 && !has.Messages:
		return "the store declares no Messages"
	case d.changes > has.Changes:
		return "the store declares too few Changes in a commit"
	case d.needs&needCloser != 0 && !closes:
		return "the store is no io.Closer"
	case d.needs&needReopen != 0 && h.Reopen == nil:
		return "the harness has no Reopen"
	case d.needs&needThrough != 0 && h.Through == nil:
		return "the harness has no Through"
	case d.needs&needRestart != 0 && h.Restart == nil:
		return "the harness has no Restart"
	case d.needs&needOwnClock != 0 && !has.OwnClock:
		return "the store declares no OwnClock"
	case d.wrong && !h.WrongClock:
		return "the harness has no WrongClock"
	}
	return ""
}

// inTime runs a try of a demand with the time that it needs.
func (d *demand) inTime(t *testing.T, h *Harness, try func(t testing.TB, bubble bool)) {
	if d.timed && h.Synctest || d.wrong && h.WrongClock {
		synctest.Test(t, func(t *testing.T) { try(t, true) })
		return
	}
	try(t, false)
}

// try tests a fresh store.
func (d *demand) try(t testing.TB, h *Harness, bubble bool) {
	t.Helper()
	t.Log(d.says)
	store := h.New(t)
	if store == nil {
		t.Fatal("storetest: New of the harness returned no store")
	}
	closeLater(t, store)
	if lie := dishonest(store); lie != "" {
		t.Fatal(lie)
	}
	if missing := d.missing(store, h); missing != "" {
		t.Skipf("skipped: %s", missing)
	}
	d.run(&trial{
		TB: t, h: h, store: store, bubble: bubble,
		attempts: cmp.Or(h.Attempts, 100), sequences: cmp.Or(h.Sequences, 40), patience: cmp.Or(h.patience, time.Minute),
	})
}

// closeLater closes a store at the end of the test, if it can be closed. The
// test may have done so before.
func closeLater(t testing.TB, store lifecycle.Store) {
	closer, ok := store.(io.Closer)
	if !ok {
		return
	}
	t.Cleanup(func() {
		if err := closer.Close(); err != nil && !errors.Is(err, lifecycle.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
}
