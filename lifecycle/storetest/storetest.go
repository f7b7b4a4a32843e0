package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Config describes what a test can do with the store beside opening it. Second or
// Exclusive is required. Demands that need another function are skipped without it. A
// Config may be copied.
type Config struct {
	// Second opens another store over the data of a store, as another process does:
	// the two have no memory and no connection in common. Every call of a demand then
	// goes to one of the two stores.
	Second func(t testing.TB, store lifecycle.Store) lifecycle.Store

	// Exclusive declares that only one store can use the data, such as a
	// [lifecycle.MemoryStore]. Second is then ignored.
	Exclusive bool

	// Bare declares that the store keeps neither Admission, ChangeToken, Fence nor Version
	// of a [lifecycle.StoredRecord], such as a table of a user without columns for them. It
	// then refuses a commit that sets Fence or Version.
	Bare bool

	// Synctest declares that the store uses no network and the clock of this process.
	// Demands about time then run in a bubble of testing/synctest.
	Synctest bool

	// Age lets d pass on the clock of the store, or moves everything that is stored
	// d into the past. It is not needed with Synctest.
	Age func(t testing.TB, store lifecycle.Store, d time.Duration)

	// WrongClock declares that the store can be opened in a bubble of
	// testing/synctest, where the clock of this process is years behind the clock
	// of the store. It is for stores that declare OwnClock.
	WrongClock bool

	// Restart kills the engine of a store and starts it again. The store stays open,
	// and other goroutines use it meanwhile.
	Restart func(t testing.TB, store lifecycle.Store)

	// Network returns a new, empty store whose connections to its engine the
	// returned Network controls.
	Network func(t testing.TB) (lifecycle.Store, Network)

	// Groups are the groups of demands that Run checks: the parts of the names before
	// the slash. Empty: all.
	Groups []string

	// Attempts is how often each caller of a demand with concurrent callers tries
	// to commit. Numbers/never_repeat removes 21 times as many objects, but
	// at most 2,100. 0: 100.
	Attempts int
}

// Network controls the connections between a store and its engine. A request begins
// with the first byte from the store after a byte from the engine. Requests are
// counted over all connections. Cut and Hold replace each other.
type Network interface {
	// Cut cuts the connection at a place of the n-th request from now. struck
	// reports whether that has happened. n = 0: no request is cut any more.
	Cut(at Place, n int) (struck func() bool)
	// Hold calls held when the n-th request from now, or its answer, has reached
	// the place, and forwards it after held has returned, even if the store has
	// closed the connection meanwhile. settled returns false if no request was
	// held; otherwise it returns true as soon as the engine has answered the
	// request or closed the connection, or if it does neither for a long time.
	Hold(at Place, n int, held func()) (settled func() bool)
	// SetDown cuts all connections and refuses new ones while down is true.
	SetDown(down bool)
}

// Place is where a [Network] cuts a connection or holds a request.
type Place uint8

// The places, in the order in which a request passes them.
const (
	BeforeRequest Place = iota // the engine receives nothing
	InRequest                  // the engine receives a part of the request
	AfterRequest               // the engine has answered, and the store receives nothing
	InAnswer                   // the store receives a part of the answer
)

var placeNames = [...]string{"before the request", "in the request", "after the request", "in the answer"}

// String returns the name of the place.
func (p Place) String() string { return placeNames[p] }

// Run runs one subtest for every demand. open returns a new, empty store that shares
// nothing with a store that it returned before; it fails the test if it cannot. Run
// closes every store that implements [io.Closer] at the end of its test. Run fails if
// neither Second nor Exclusive of the config is set, and if one of its Groups does not exist.
func Run(t *testing.T, open func(t testing.TB) lifecycle.Store, config *Config) {
	t.Helper()
	if err := config.check(); err != nil {
		t.Fatal(err)
	}
	for _, d := range demands {
		if len(config.Groups) > 0 && !slices.ContainsFunc(config.Groups, d.in) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			d.run(t, config, func(t testing.TB) { d.check(newTester(t, open(t), config)) })
		})
	}
}

// check refuses a config that does not test what two processes do, or names a group that
// does not exist: a misspelt group would check nothing.
func (c *Config) check() error {
	if c == nil || c.Second == nil && !c.Exclusive {
		return errors.New("storetest: set Config.Second, which opens another store over the same data; " +
			"set Config.Exclusive if only one store can use the data")
	}
	for _, group := range c.Groups {
		if !slices.ContainsFunc(demands, func(d demand) bool { return d.in(group) }) {
			return fmt.Errorf("storetest: Config.Groups has the unknown group %q", group)
		}
	}
	return nil
}

// demand is one requirement of the contract of a store.
type demand struct {
	name  string // group/requirement: the name of the subtest
	check func(t *tester)
	timed bool // it runs in a bubble of testing/synctest if the store can be opened there
}

// demands are all demands. The comment of a function states its demand.
var demands = []demand{
	{name: "Capabilities/are_honest", check: capabilitiesAreHonest},
	{name: "Names/any_id_machine_and_state", check: anyName},
	{name: "Names/nul_is_refused_or_kept", check: nulIsRefusedOrKept},
	{name: "Names/sizes", check: sizesOfFields},
	{name: "Names/sizes_of_pages", check: sizesOfPages},
	{name: "Commit/malformed_or_undeclared_is_refused", check: commitsAreRefused},
	{name: "Commit/as_many_as_declared", check: asManyAsDeclared},
	{name: "Commit/grants_are_held_or_nothing_is_written", check: grantsAreHeld},
	{name: "Numbers/never_repeat", check: numbersNeverRepeat, timed: true},
	{name: "Time/conditions_combine", check: conditionsCombine, timed: true},
	{name: "Time/clock_of_the_store", check: clockOfTheStore, timed: true},
	{name: "Context/ended_is_refused", check: endedContextIsRefused},
	{name: "Context/end_during_a_call_is_exact", check: endDuringACallIsExact},
	{name: "Close/refuses_calls", check: closeRefusesCalls},
	{name: "Kill/keeps_everything", check: killKeepsEverything},
	{name: "Outage/calls_are_cut", check: callsAreCut},
	{name: "Outage/context_ends_at_every_request", check: contextEndsAtEveryRequest},
	{name: "Outage/owner_is_read_without_waiting", check: ownerIsReadWithoutWaiting},
	{name: "Outage/store_recovers", check: storeRecovers},
	{name: "Outage/close_during_commits_is_exact", check: closeDuringCommits},
	{name: "Outage/restart_keeps_everything", check: restartKeepsEverything},
	{name: "Concurrent/history_is_linearizable", check: historyIsLinearizable},
	{name: "Concurrent/one_creation_wins", check: oneCreationWins},
	{name: "Concurrent/one_request_wins", check: oneRequestWins},
	{name: "Concurrent/single_writer_never_conflicts", check: singleWriterNeverConflicts},
	{name: "Concurrent/transactions_in_any_order", check: transactionsInAnyOrder},
	{name: "Concurrent/preconditions_hold_at_the_commit", check: preconditionsHoldAtTheCommit},
	{name: "Concurrent/pages_miss_nothing", check: pagesMissNothing},
	{name: "Concurrent/messages_are_read_once", check: messagesAreReadOnce},
	{name: "Model/random_commits_agree", check: randomCommitsAgree},
}

func (d *demand) in(group string) bool { return strings.HasPrefix(d.name, group+"/") }

// run runs the check of a demand, in a bubble if the store can be opened there.
func (d *demand) run(t *testing.T, config *Config, check func(testing.TB)) {
	if d.timed && (config.Synctest || config.WrongClock) {
		synctest.Test(t, func(t *testing.T) { check(t) })
	} else {
		check(t)
	}
}

// tester checks one demand on one new store. Its methods end the test on an error
// that the demand does not require, by package require, which prints the trace of the calls:
// they do not call Helper. They are for one goroutine; see together.
type tester struct {
	testing.TB
	config   *Config
	stores   []lifecycle.Store // over the same data; one if it is exclusive
	turns    *atomic.Uint64    // calls of store
	has      lifecycle.Capabilities
	attempts int
}

func newTester(t testing.TB, store lifecycle.Store, config *Config) *tester {
	tt := &tester{TB: t, config: config, turns: new(atomic.Uint64), attempts: cmp.Or(config.Attempts, 100)}
	tt.use(store, config.Exclusive)
	return tt
}

// use makes a store those that are tested, with a second one over its data unless it is alone.
func (t *tester) use(store lifecycle.Store, alone bool) {
	t.stores, t.has = []lifecycle.Store{t.opened(store)}, store.Capabilities()
	if !alone {
		t.stores = append(t.stores, t.opened(t.config.Second(t.TB, store)))
	}
}

// opened returns a store that the test has opened, and closes it at the end.
func (t *tester) opened(store lifecycle.Store) lifecycle.Store {
	require.NotNil(t, store, "the test has opened no store")
	if closer, ok := store.(io.Closer); ok {
		t.Cleanup(func() {
			if err := closer.Close(); err != nil && !errors.Is(err, lifecycle.ErrClosed) {
				t.Errorf("Close: %v", err)
			}
		})
	}
	return store
}

// store returns the store of the next call. The stores take turns in the order of the
// Thue-Morse sequence, which has no rhythm: a demand that repeats some calls sends each of
// them to both stores.
func (t *tester) store() lifecycle.Store {
	return t.stores[bits.OnesCount64(t.turns.Add(1))%len(t.stores)]
}

// needs skips a demand.
func (t *tester) needs(has bool, otherwise string) {
	if !has {
		t.Skip("skipped: " + otherwise)
	}
}

func (t *tester) needsTwoChanges() {
	t.needs(t.has.Changes >= 2, "the store declares fewer than 2 changes in a commit")
}

func (t *tester) needsConfig(field string, set bool) { t.needs(set, "Config."+field+" is not set") }
