package sqllocktest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// mostOpen is more than any demand of the suite uses at once.
const mostOpen = 16

// opener opens lockers and closes the oldest ones, which a test that needs hundreds, one after
// the other, does not use any more: each has a connection that listens.
type opener struct {
	*database
	each int // lockers of one tree
	mu   sync.Mutex
	open map[testing.TB][]*sqllock.Locker

	lines []line // those of faulty
	stop  func() // closes the lockers of faulty
}

func (o *opener) new(t testing.TB, c lock.Config) lock.Locker {
	config := &sqllock.Config{MaxWaiters: c.MaxWaiters, MaxHolders: c.MaxHolders}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.open[t]) == 0 {
		t.Cleanup(func() { o.close(t, 0) })
	}
	o.close(t, mostOpen-o.each)
	tree := newTree()
	for range o.each {
		l, err := sqllock.Open(t.Context(), o.db, configOf(t, o.dsn), tree, config)
		require.NoError(t, err)
		o.open[t] = append(o.open[t], l)
	}
	return locktest.Several(o.open[t][len(o.open[t])-o.each:]...)
}

// close closes the oldest lockers of a test until so many are left.
func (o *opener) close(t testing.TB, left int) {
	for len(o.open[t]) > left {
		require.NoError(t, o.open[t][0].Close())
		o.open[t] = o.open[t][1:]
	}
}

// conforms runs the suite with lockers that are several of one tree, or one.
func conforms(t *testing.T, lockers int) {
	o := &opener{database: newDatabase(t), each: lockers, open: map[testing.TB][]*sqllock.Locker{}}
	config := &locktest.Config{
		Patience: time.Minute, Steps: 300, Histories: 6, Attempts: 10,
	}
	if lockers > 1 {
		config.Faulty, config.Unknown, config.TTL = o.faulty, unknown, faultyTTL
		for range lockers {
			o.lines = append(o.lines, o.line(t))
		}
		o.stop = func() {}
		t.Cleanup(func() { o.stop() })
	}
	if scale.Full {
		config.Steps, config.Histories, config.Attempts = 10_000, 400, 100
	}
	locktest.Run(t, o.new, config)
}

// A locker passes the conformance suite of lock drivers, the vectors included.
func TestConforms(t *testing.T) { conforms(t, 1) }

// So do several lockers of one tree, as those of several processes.
func TestSeveralConform(t *testing.T) { conforms(t, 3) }
