package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// trial is one demand tried on one fresh store. Its methods end the test on an
// error that the demand does not ask for; they are for the test's goroutine only.
type trial struct {
	testing.TB
	h         *Harness
	store     lifecycle.Store
	bubble    bool // time is that of a bubble
	attempts  int
	sequences int
	patience  time.Duration
	progress  atomic.Int64 // calls that were answered, see observe
}

// The machine and the states of most objects here.
const (
	machine = "crane"
	idle    = "Idle"
	moving  = "Moving"
	broken  = "Broken"
	gone    = "Gone" // the name of the absent state
)

func key(id string) lifecycle.Key { return lifecycle.Key{Machine: machine, ID: id} }

// change takes an object from the record that was read to a state.
func change(before lifecycle.StoredRecord, state string) lifecycle.StoredChange {
	to := lifecycle.StoredRecord{
		Key: before.Key, State: state, Origin: state,
		Sequence: before.Sequence + 1, Operation: before.Operation,
		Actor: "tester", Event: "to " + state, Payload: []byte("in " + state),
	}
	if !before.Exists() {
		to.Operation++
	}
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to,
	}
}

// removal takes an object away.
func removal(before lifecycle.StoredRecord) lifecycle.StoredChange {
	ch := change(before, gone)
	ch.To.Payload, ch.Remove = nil, true
	return ch
}

func commitOf(changes ...lifecycle.StoredChange) *lifecycle.Commit {
	return &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: changes}
}

// again returns the commit as it was before the store filled it.
func again(c *lifecycle.Commit) *lifecycle.Commit {
	twin := *c
	twin.Changes = append([]lifecycle.StoredChange(nil), c.Changes...)
	return &twin
}

func (t *trial) get(k lifecycle.Key) lifecycle.StoredRecord {
	t.Helper()
	r, err := t.store.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("Get of %s %q: %v", k.Machine, k.ID, err)
	}
	return r
}

// send commits, and takes from what the store filled only what is the store's to
// fill: the records stay those that the caller asked for.
func send(ctx context.Context, store lifecycle.Store, c *lifecycle.Commit) error {
	sent := again(c)
	err := store.Commit(ctx, sent)
	for i := range c.Changes {
		to, filled := &c.Changes[i].To, &sent.Changes[i].To
		to.Revision, to.ChangedAt, to.Deadline = filled.Revision, filled.ChangedAt, filled.Deadline
	}
	return err
}

func (t *trial) commit(c *lifecycle.Commit) {
	t.Helper()
	if err := send(t.Context(), t.store, c); err != nil {
		t.Fatalf("Commit of %d changes, the first from %q to %q of %s %q: %v", len(c.Changes),
			c.Changes[0].From, c.Changes[0].To.State, c.Changes[0].To.Machine, c.Changes[0].To.ID, err)
	}
}

// write commits one change and returns the record as the store filled it.
func (t *trial) write(ch lifecycle.StoredChange) lifecycle.StoredRecord {
	t.Helper()
	c := commitOf(ch)
	t.commit(c)
	return c.Changes[0].To
}

// put takes an object from wherever it is to a state.
func (t *trial) put(k lifecycle.Key, state string) lifecycle.StoredRecord {
	t.Helper()
	return t.write(change(t.get(k), state))
}

func (t *trial) move(before lifecycle.StoredRecord, state string) lifecycle.StoredRecord {
	t.Helper()
	return t.write(change(before, state))
}

// remove takes an object away and returns what is left of it.
func (t *trial) remove(before lifecycle.StoredRecord) lifecycle.StoredRecord {
	t.Helper()
	t.write(removal(before))
	left := t.get(before.Key)
	if left.Exists() {
		t.Fatalf("after its removal the object is %s", in(&left))
	}
	return left
}

// refused sends a commit that must be a conflict, and returns it.
func (t *trial) refused(c *lifecycle.Commit, why string) *lifecycle.ConflictError {
	t.Helper()
	err := t.store.Commit(t.Context(), c)
	conflict, ok := errors.AsType[*lifecycle.ConflictError](err)
	if !ok {
		t.Fatalf("a commit with %s is to be a *ConflictError, it is: %v", why, err)
	}
	if !errors.Is(err, lifecycle.ErrConflict) {
		t.Fatalf("the error of a commit with %s does not match ErrConflict: %v", why, err)
	}
	return conflict
}

// same demands that two values are the same to a caller.
func same[T any](t *trial, what string, got, want T) {
	t.Helper()
	if d := differences(got, want); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// stays demands that objects are as they were.
func (t *trial) stays(after string, were ...lifecycle.StoredRecord) {
	t.Helper()
	for i := range were {
		same(t, "after "+after+", "+in(&were[i]), t.get(were[i].Key), were[i])
	}
}

func (t *trial) list(q lifecycle.Query) []lifecycle.StoredRecord {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	found, err := t.store.List(t.Context(), q)
	if err != nil {
		t.Fatalf("List of %+v: %v", q, err)
	}
	return found
}

// ids lists ids; an empty list is not nil.
func (t *trial) ids(q lifecycle.Query) []string {
	t.Helper()
	list := []string{}
	for _, r := range t.list(q) {
		list = append(list, r.ID)
	}
	return list
}

func (t *trial) history(k lifecycle.Key, after uint64, limit int) []lifecycle.HistoryRow {
	t.Helper()
	rows, err := t.store.(lifecycle.Historian).History(t.Context(), k, after, limit)
	if err != nil {
		t.Fatalf("History of %s %q: %v", k.Machine, k.ID, err)
	}
	return rows
}

func (t *trial) messages(limit int) []lifecycle.OutboxMessage {
	t.Helper()
	list, err := t.store.(lifecycle.Outbox).Messages(t.Context(), limit)
	if err != nil {
		t.Fatalf("Messages: %v", err)
	}
	return list
}

func (t *trial) discard(numbers ...uint64) {
	t.Helper()
	if err := t.store.(lifecycle.Outbox).Discard(t.Context(), numbers...); err != nil {
		t.Fatalf("Discard of %d: %v", numbers, err)
	}
}

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

func (t *trial) invalid(what string, err error) {
	t.Helper()
	if !errors.Is(err, lifecycle.ErrInvalid) {
		t.Errorf("%s is to be refused with ErrInvalid, it is: %v", what, err)
	}
}
