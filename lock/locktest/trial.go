package locktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// trial is one demand tried on one fresh locker. Its methods end the test on an
// error that the demand does not ask for; those that do not return an error are
// for the test's goroutine only.
type trial struct {
	testing.TB
	h         *Harness
	l         lock.Locker
	bubble    bool // time is that of a bubble
	patience  time.Duration
	steps     int
	histories int
	attempts  int
	calls     []*call
}

// manyHolders is more than any refusal here has to name.
const manyHolders = 1000

// fresh makes a locker, which names all holders if it lets itself be told so.
func (t *trial) fresh(setup func(c *lock.Config)) lock.Locker {
	t.Helper()
	var c lock.Config
	if t.h.MaxHolders {
		c.MaxHolders = manyHolders
	}
	if setup != nil {
		setup(&c)
	}
	l := t.h.New(t, c)
	if l == nil {
		t.Fatal("locktest: New of the harness returned no locker")
	}
	return l
}

func at(m lock.Mode, path string) lock.Request {
	return lock.Request{Path: lock.MustParse(path), Mode: m}
}

func by(owner string) *lock.Options { return &lock.Options{Owner: owner} }

// tryFor asks for requests without waiting: for one by TryLock, for others by
// TryLockAll.
func tryFor(ctx context.Context, l lock.Locker, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	if len(rs) == 1 {
		return l.TryLock(ctx, rs[0], o)
	}
	return l.TryLockAll(ctx, rs, o)
}

func waitFor(ctx context.Context, l lock.Locker, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	if len(rs) == 1 {
		return l.Lock(ctx, rs[0], o)
	}
	return l.LockAll(ctx, rs, o)
}

// take tries, and must be granted.
func (t *trial) take(owner string, rs ...lock.Request) *lock.Held {
	t.Helper()
	return t.takeAs(by(owner), rs...)
}

func (t *trial) takeAs(o *lock.Options, rs ...lock.Request) *lock.Held {
	t.Helper()
	h, err := tryFor(t.Context(), t.l, rs, o)
	if err != nil {
		t.Fatalf("%s by %q, with nobody in the way, is refused: %v", rs, o.Owner, err)
	}
	return t.sound(h, rs)
}

// sound demands of a fresh grant that it is one.
func (t *trial) sound(h *lock.Held, rs []lock.Request) *lock.Held {
	t.Helper()
	if fault := unsound(h, rs); fault != "" {
		t.Fatal(fault)
	}
	return h
}

// unsound says what is wrong with a fresh grant, nothing if all is right.
func unsound(h *lock.Held, rs []lock.Request) string {
	if h == nil {
		return fmt.Sprintf("%s: neither a grant nor an error", rs)
	}
	if err := h.Check(); err != nil {
		return fmt.Sprintf("%s: Check of a fresh grant: %v", rs, err)
	}
	if h.Token() == 0 {
		return fmt.Sprintf("%s: a grant has token 0", rs)
	}
	if got, want := h.Requests(), canonical(rs); !slices.Equal(got, want) {
		return fmt.Sprintf("a grant of %s holds %s, not %s", rs, got, want)
	}
	return ""
}

// refused tries, and must meet a conflict.
func (t *trial) refused(owner string, rs ...lock.Request) *lock.ConflictError {
	t.Helper()
	return t.refusedAs(by(owner), rs...)
}

func (t *trial) refusedAs(o *lock.Options, rs ...lock.Request) *lock.ConflictError {
	t.Helper()
	h, err := tryFor(t.Context(), t.l, rs, o)
	return t.conflict(fmt.Sprintf("%s by %q", rs, o.Owner), h, err, lock.ErrConflict)
}

// conflict demands a ConflictError for a reason, with names.
func (t *trial) conflict(what string, h *lock.Held, err, reason error) *lock.ConflictError {
	t.Helper()
	conflict, ok := errors.AsType[*lock.ConflictError](err)
	switch {
	case err == nil:
		t.Fatalf("%s is granted", what)
	case h != nil:
		t.Fatalf("%s: a grant and an error: %v", what, err)
	case !ok:
		t.Fatalf("%s: the error is no *ConflictError: %v", what, err)
	case !errors.Is(err, reason):
		t.Fatalf("%s: the error does not match %q: %v", what, reason, err)
	case len(conflict.Holders) == 0:
		t.Fatalf("%s: the error names nobody: %v", what, err)
	}
	return conflict
}

func (t *trial) unlock(h *lock.Held) {
	t.Helper()
	if err := h.Unlock(t.Context()); err != nil {
		t.Fatalf("Unlock of %s: %v", h.Requests(), err)
	}
}

// unlockAside is unlock for any goroutine.
func (t *trial) unlockAside(h *lock.Held) {
	if err := h.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock of %s: %v", h.Requests(), err)
	}
}

func (t *trial) snapshot() lock.Snapshot {
	t.Helper()
	s, err := t.l.Snapshot(t.Context())
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	return s
}

// eventually waits until a fault is none any more, and says the last one. What
// it asks for is to follow from what has been done, without any further event.
func (t *trial) eventually(fault func() string) string {
	end := time.Now().Add(t.patience)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if t.bubble {
			synctest.Wait()
		}
		said := fault()
		if said == "" || time.Now().After(end) {
			return said
		}
		time.Sleep(pause)
	}
}

// idle demands that nothing is left.
func (t *trial) idle(after string) {
	t.Helper()
	if fault := t.eventually(func() string { return busy(t.Context(), t.l) }); fault != "" {
		t.Fatalf("after %s: %s", after, fault)
	}
}

// busy says what a locker still has, nothing if it is idle.
func busy(ctx context.Context, l lock.Locker) string {
	s, err := l.Snapshot(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf("Snapshot: %v", err)
	case s.Held != 0 || s.Waiting != 0 || len(s.Holders) != 0:
		return fmt.Sprintf("%d are held and %d wait: %v", s.Held, s.Waiting, s.Holders)
	case s.Nodes != 0:
		return fmt.Sprintf("nothing is held and nobody waits, but %d nodes are kept", s.Nodes)
	}
	return ""
}

// unchanged demands that the locker holds what it held.
func (t *trial) unchanged(after string, before lock.Snapshot) {
	t.Helper()
	before.LastToken = 0 // an engine may use one up
	if fault := t.eventually(func() string {
		now := t.snapshot()
		now.LastToken = 0
		if !reflect.DeepEqual(trimmed(now), trimmed(before)) {
			return fmt.Sprintf("after %s the locker holds %+v, where it was %+v", after, now, before)
		}
		return ""
	}); fault != "" {
		t.Fatal(fault)
	}
}

// trimmed makes snapshots comparable: of times, the instant counts, and no
// holders are no holders.
func trimmed(s lock.Snapshot) lock.Snapshot {
	holders := make([]lock.Holder, len(s.Holders))
	for i, h := range s.Holders {
		h.Since = h.Since.Round(0).UTC()
		holders[i] = h
	}
	s.Holders = holders
	return s
}

// nothingMore waits until nothing happens any more, where that can be known.
func (t *trial) nothingMore() {
	if t.bubble {
		synctest.Wait()
	}
}

// bounded returns a context for calls that come back unless they hang, and which
// nobody watches: those of crowds.
func (t *trial) bounded() context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), t.patience, errHangs)
	t.Cleanup(cancel)
	return ctx
}

var errHangs = errors.New("locktest: the call hangs: it waits for nobody who would not go")

// together runs n goroutines that start at the same moment, and waits for them.
// They must not call what ends the test.
func together(n int, run func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	all.Wait()
}
