package locktest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// Config describes the lockers that are tested. Nil and the zero Config mean the
// defaults.
type Config struct {
	// FirstToken declares that the lockers obey the field of [lock.Config] with that name. A
	// demand that needs it is skipped otherwise.
	FirstToken bool

	// Faulty opens a locker with faults: connections that are cut at random before a request,
	// after it and before the answer; requests that arrive after their call has returned; and
	// sessions that end. Most sessions must go on: the end of a session removes what a fault
	// of the driver has left. Unknown reports that an error of such a locker leaves open
	// whether the call was executed, or is executed later; [lock.ErrLost] always does. A call
	// that hangs fails in any case. A demand about faults needs both. TTL is how long such a
	// session lives without a renewal. Default, 0: the suite does not test whether sessions are
	// renewed.
	Faulty  func(t testing.TB, c lock.Config) lock.Locker
	Unknown func(err error) bool
	TTL     time.Duration

	// Patience is how long a call may take that waits for no other request, or only for
	// clients that release soon. The suite reports a call that takes longer as hanging, and
	// waits a tenth as long for every later one. Default, 0: 10 seconds.
	Patience time.Duration

	// Steps is the minimum number of random calls that are compared with those of
	// a Tree. Default, 0: 10,000.
	Steps int

	// Histories is the number of concurrent histories. Default, 0: 400.
	Histories int

	// Attempts is the number of rounds of every other concurrent demand.
	// Default, 0: 100.
	Attempts int

	// Seed starts the random calls. A failure reports it. Default, 0: a new seed
	// every time.
	Seed uint64
}

// Run tests a locker. Every demand and every vector is a subtest, named as in the
// package documentation.
//
// open returns a fresh, idle locker that shares nothing with those it returned before: a
// tree, or its own prefix or schema on a server. It registers its clean-up with t.Cleanup
// and fails the test if it cannot make a locker. It obeys MaxWaiters and MaxHolders of the
// [lock.Config], and FirstToken if config declares that. The observer is zero.
func Run(t *testing.T, open func(t testing.TB, c lock.Config) lock.Locker, config *Config) {
	t.Helper()
	h := newHarness(open, config)
	sequences, err := parseVectors(vectors)
	require.NoError(t, err, "read vectors")
	for _, d := range slices.Concat(demands(), sequences) {
		t.Run(d.name, func(t *testing.T) { d.run(t, h) })
	}
}

// harness is what Run has received, with the defaults.
type harness struct {
	Config
	open  func(t testing.TB, c lock.Config) lock.Locker
	hangs atomic.Bool // something took longer than Patience
}

func newHarness(open func(testing.TB, lock.Config) lock.Locker, config *Config) *harness {
	c := *cmp.Or(config, new(Config))
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Steps, c.Histories, c.Attempts = cmp.Or(c.Steps, 10_000), cmp.Or(c.Histories, 400), cmp.Or(c.Attempts, 100)
	c.Seed = cmp.Or(c.Seed, rand.Uint64())
	return &harness{Config: c, open: open}
}

// undeclared returns a field that a demand needs and the configuration does not declare.
func (h *harness) undeclared(d *demand) string {
	switch {
	case d.config.FirstToken > 0 && !h.FirstToken:
		return "FirstToken"
	case d.faulty && h.Faulty == nil:
		return "Faulty"
	case d.faulty && h.Unknown == nil:
		return "Unknown"
	case d.expires && h.TTL == 0:
		return "TTL"
	}
	return ""
}

// demand is one requirement of the contract. It has either a sequence of steps or a test.
type demand struct {
	name    string // group/requirement
	states  string // the sentence of a script
	config  lock.Config
	faulty  bool // it needs a locker with faults
	expires bool // and the TTL of its sessions
	steps   []step
	test    func(*env)
}

func (d *demand) run(t testing.TB, h *harness) {
	if field := h.undeclared(d); field != "" {
		t.Skipf("skipped: the configuration does not declare %s", field)
	}
	e := &env{TB: t, h: h, config: d.config}
	e.config.MaxHolders = allHolders
	defer e.endCalls()
	if d.test == nil {
		e.play(d.states, d.steps)
		return
	}
	e.l = e.fresh()
	d.test(e)
}

// allHolders is more than any refusal of the suite has to list.
const allHolders = 1000

// env is the environment of one demand.
type env struct {
	testing.TB
	h      *harness
	config lock.Config
	l      lock.Locker // of a demand with a test
	calls  []*call
}

func (e *env) fresh() lock.Locker {
	e.Helper()
	l := e.h.open(e, e.config)
	if l == nil {
		e.Fatal("locktest: open returned no locker")
	}
	return l
}
