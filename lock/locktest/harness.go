package locktest

import (
	"cmp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// Harness says how to get at the lockers that are tested. New is required; the
// zero value of every other field is a default. It is a value and may be copied.
type Harness struct {
	// New returns a fresh, idle locker, which shares nothing with any that it
	// returned before: a tree, or a prefix or schema of its own on a server. The
	// suite calls it for every demand, random sequence, history and system of a
	// vector. What is to be cleaned up, New leaves to t.Cleanup. It fails the
	// test if it cannot.
	//
	// Of the configuration it obeys the fields that are declared below; the
	// others are zero.
	New func(t testing.TB, c lock.Config) lock.Locker

	// FirstToken, MaxWaiters and MaxHolders declare that New obeys the field of
	// [lock.Config] with that name. What is demanded of a field that is not
	// declared is skipped, and says so.
	FirstToken, MaxWaiters, MaxHolders bool

	// Synctest declares that the locker does no I/O and lives by the clock and
	// the goroutines of this process. Waits then run in bubbles of
	// testing/synctest, where "nothing more happens" can be known; without it,
	// the suite asks the locker again and again until what is demanded is so.
	// Demands about contexts that panic need it too.
	Synctest bool

	// Patience is how long a call may take that has nothing to wait for, before
	// the suite says that it hangs. It is no measure of speed. 0: 10 seconds.
	Patience time.Duration

	// Steps is how many random calls, at least, are compared with a model.
	// 0: 10,000.
	Steps int

	// Histories is how many histories of concurrent calls are checked. 0: 400.
	Histories int

	// Attempts is the measure of every other demand that tries again and again,
	// mostly with concurrent callers. 0: 100.
	Attempts int

	// Seed is where the random calls begin, to repeat what failed. 0: a new seed
	// every time; a failure tells it.
	Seed uint64
}

// Run tests a locker: one subtest for every demand and every vector, named as
// in the package's documentation. Demands that need something which the harness
// does not declare are skipped, and say so.
//
// It changes GOMAXPROCS while the histories are made, and puts it back.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.check("Run")
	rest := demands()
	for len(rest) > 0 {
		group, n := rest[0].group(), 0
		for n < len(rest) && rest[n].group() == group {
			n++
		}
		now := rest[:n]
		rest = rest[n:]
		t.Run(group, func(t *testing.T) { runAll(t, &h, now) })
	}
	t.Run("Vectors", func(t *testing.T) { RunVectors(t, h, vectors) })
}

func (h *Harness) check(caller string) {
	if h.New == nil {
		panic("locktest: " + caller + " needs a Harness with New")
	}
}

func runAll(t *testing.T, h *Harness, list []demand) {
	for _, d := range list {
		_, name, _ := strings.Cut(d.name, "/")
		t.Run(name, func(t *testing.T) {
			d.inTime(t, h, func(t testing.TB, bubble bool) { d.try(t, h, bubble) })
		})
	}
}

// demand is one thing that the contract asks of a locker.
type demand struct {
	name  string // group/what_is_demanded: the name of the subtest
	says  string // the same as a sentence, for the documentation
	needs need
	setup func(c *lock.Config) // fields that needs has
	// crowd: many goroutines that run at once. They do not wait for what time
	// brings, and go without a bubble.
	crowd bool
	run   func(t *trial)
}

func (d *demand) group() string {
	group, _, _ := strings.Cut(d.name, "/")
	return group
}

// need is what a demand cannot be tested without.
type need uint8

const (
	needFirstToken need = 1 << iota
	needMaxWaiters
	needMaxHolders
	needSynctest
)

// missing says what the harness lacks, nothing if all is there.
func (d *demand) missing(h *Harness) string {
	switch {
	case d.needs&needFirstToken != 0 && !h.FirstToken:
		return "the harness declares no FirstToken"
	case d.needs&needMaxWaiters != 0 && !h.MaxWaiters:
		return "the harness declares no MaxWaiters"
	case d.needs&needMaxHolders != 0 && !h.MaxHolders:
		return "the harness declares no MaxHolders"
	case d.needs&needSynctest != 0 && !h.Synctest:
		return "the harness declares no Synctest"
	}
	return ""
}

// inTime runs a try of a demand with the time that it needs.
func (d *demand) inTime(t *testing.T, h *Harness, try func(t testing.TB, bubble bool)) {
	if h.Synctest && !d.crowd {
		synctest.Test(t, func(t *testing.T) { try(t, true) })
		return
	}
	try(t, false)
}

// try tests a fresh locker.
func (d *demand) try(t testing.TB, h *Harness, bubble bool) {
	t.Helper()
	t.Log(d.says)
	if missing := d.missing(h); missing != "" {
		t.Skipf("skipped: %s", missing)
	}
	d.run(newTrial(t, h, bubble, d.setup))
}

func newTrial(t testing.TB, h *Harness, bubble bool, setup func(c *lock.Config)) *trial {
	trial := &trial{
		TB: t, h: h, bubble: bubble,
		patience:  cmp.Or(h.Patience, 10*time.Second),
		steps:     cmp.Or(h.Steps, 10_000),
		histories: cmp.Or(h.Histories, 400),
		attempts:  cmp.Or(h.Attempts, 100),
	}
	trial.l = trial.fresh(setup)
	t.Cleanup(trial.end)
	return trial
}
