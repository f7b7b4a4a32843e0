package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

func named(id, hash string) *lifecycle.Change[size] {
	return &lifecycle.Change[size]{Request: lifecycle.RequestID{ID: id, Hash: hash}}
}

// repeated requires that a request was recognized, and returns what it has done.
func repeated(t *testing.T, err error) lifecycle.HistoryRow {
	t.Helper()
	require.ErrorIs(t, err, lifecycle.ErrRepeated)
	again, ok := errors.AsType[*lifecycle.RepeatedError](err)
	require.True(t, ok)
	return again.Row
}

// TestRepeatedRequest: a request that is sent again changes nothing, in any process and
// after later changes, and its answer is that of the first time.
func TestRepeatedRequest(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	config := lifecycle.Config[event]{}
	m, other := workers(store, config), workers(store, config)

	made, err := m.Create(t.Context(), "a", "create", user, size{N: 1}, named("r1", "h"))
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "done", "worker", ""))
	ticket := do(t, m, "a", "start", user, nothing, named("r2", ""))
	wait(t, ticket)
	stopping := fire(t, m, "a", "stop", user, named("r3", ""))

	commits := store.commits
	for range 2 {
		_, err = other.Create(t.Context(), "a", "create", user, size{N: 1}, named("r1", "h"))
		row := repeated(t, err)
		require.Equal(t, made.Sequence, row.Sequence)
		require.Equal(t, made.Operation, row.Operation)
		require.Equal(t, string(made.State), row.To)
		now := winnerOf(t, other, err)
		require.Equal(t, stopping, now)
		require.ErrorContains(t, err, `repeated request: request "r1" has led work-vm "a" to `)

		_, err = other.Create(t.Context(), "drawn anew", "create", user, size{N: 1}, named("r1", "h"))
		require.Equal(t, row, repeated(t, err), "the service draws an id for each request")

		_, err = other.Do(t.Context(), "a", "start", user, nothing, named("r2", ""))
		require.Equal(t, ticket.Operation(), repeated(t, err).Operation)

		_, err = other.Fire(t.Context(), "a", "stop", user, named("r3", ""))
		require.Equal(t, stopping.Sequence, repeated(t, err).Sequence)
		require.Equal(t, 409, lifecycle.HTTPStatus(err))
	}
	require.Equal(t, commits, store.commits)

	for name, call := range map[string]func() error{
		"another hash": func() error {
			_, err := m.Create(t.Context(), "a", "create", user, size{}, named("r1", "other"))
			return err
		},
		"another verb": func() error {
			_, err := m.Fire(t.Context(), "a", "create", user, named("r1", "h"))
			return err
		},
		"another event": func() error { _, err := m.Fire(t.Context(), "a", "start", user, named("r3", "")); return err },
		"another actor": func() error { _, err := m.Fire(t.Context(), "a", "stop", "worker", named("r3", "")); return err },
		"another object": func() error {
			_, err := m.Fire(t.Context(), "b", "stop", user, named("r3", ""))
			return err
		},
		"a hash alone": func() error { _, err := m.Fire(t.Context(), "a", "stop", user, named("", "h")); return err },
		"a long id": func() error {
			_, err := m.Fire(t.Context(), "a", "stop", user, named(strings.Repeat("x", 256), ""))
			return err
		},
		"a report": func() error { _, err := m.Report(t.Context(), "a", 3, "done", "worker", named("r4", "")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.NotErrorIs(t, err, lifecycle.ErrRepeated)
		})
	}
	require.Equal(t, commits, store.commits)
}

// bare is a store without history.
type bare struct{ lifecycle.Store }

// TestRefusedRequestIsNotKept: a request that was refused may be sent again and succeed.
func TestRefusedRequestIsNotKept(t *testing.T) {
	m, _ := vms(t)
	create(t, m, "a", "create", user, size{N: 1})
	_, err := m.Fire(t.Context(), "a", "update", user, named("r1", ""))
	require.ErrorIs(t, err, lifecycle.ErrBusy)
	fire(t, m, "a", "done", agent, nil)
	_, err = m.Fire(t.Context(), "a", "ping", user, named("r1", ""))
	require.NoError(t, err, "the table ignores the event")
	fire(t, m, "a", "update", user, named("r1", ""))

	none := lifecycle.Must(sizedVM, bare{lifecycle.NewMemoryStore()}, nil)
	_, err = none.Create(t.Context(), "a", "create", user, size{}, named("r1", ""))
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestRepeatedTransaction: one repeated change leaves the whole transaction out.
func TestRepeatedTransaction(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	ready(t, m, "b")
	parts := func(request string) []part {
		return []part{firing(m, "a", "touch", user, nil), firing(m, "b", "touch", user, named(request, ""))}
	}
	require.NoError(t, commitAll(t.Context(), parts("r1")...))
	before := all(t, store.MemoryStore, "vm", "a", "b")
	require.Equal(t, "b", repeated(t, commitAll(t.Context(), parts("r1")...)).ID)
	require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "b"))
	twice := commitAll(t.Context(), firing(m, "a", "touch", user, named("r2", "")), firing(m, "b", "touch", user, named("r2", "")))
	require.ErrorIs(t, twice, lifecycle.ErrInvalid)

	moving := func() error {
		return commitAll(t.Context(), firing(m, "a", "update", user, nil), firing(m, "b", "touch", user, named("r3", "")))
	}
	require.NoError(t, moving())
	require.Equal(t, "b", repeated(t, moving()).ID, "the first change is not permitted again")
}

// TestRepeatedRequestOfOneMachine: a transaction may have one request id for changes of
// different machines. The row of another machine is not the one that is repeated.
func TestRepeatedRequestOfOneMachine(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	vms, leases := lifecycle.Must(sizedVM, store, nil), lifecycle.Must(lease, store, nil)
	store.afterGet = func(n int) {
		if n == 2 {
			_, err := store.others().Create(t.Context(), "c", "create", user, size{}, named("r1", ""))
			require.NoError(t, err)
		}
	}
	err := commitAll(t.Context(), adding(leases, "a", user, size{}, named("r1", "")), creating(vms, "b", "create", user, size{}, named("r1", "")))
	require.Equal(t, "vm", repeated(t, err).Machine)
	now := winnerOf(t, vms, err)
	require.Equal(t, "c", now.ID)
}

// TestRepeatedByBeforeCommit: the request of a change that BeforeCommit adds was accepted before.
// The error has no record of the call's own object.
func TestRepeatedByBeforeCommit(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	plain := lifecycle.Must(sizedVM, store, nil)
	ready(t, plain, "a")
	ready(t, plain, "counter")
	m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
		return txOf(firing(plain, "counter", "touch", user, named("r1", ""))), nil
	}})
	fire(t, m, "a", "touch", user, nil)
	_, err := m.Fire(t.Context(), "a", "touch", user, nil)
	require.Equal(t, "counter", repeated(t, err).ID)
	_, ok := lifecycle.Current(m, err)
	require.False(t, ok)
}

// TestRepeatedStates: requests that put an object into different states are different.
func TestRepeatedStates(t *testing.T) {
	m, _ := vms(t)
	ready(t, m, "a")
	override := func(to state) error {
		_, err := m.Override(t.Context(), "a", to, user, "repaired", named("r1", ""))
		return err
	}
	require.NoError(t, override("Failed"))
	repeated(t, override("Failed"))
	require.ErrorIs(t, override("Ready"), lifecycle.ErrInvalid)
	add := func(at state) error {
		_, err := m.Add(t.Context(), "b", at, user, size{}, named("r2", ""))
		return err
	}
	require.NoError(t, add("Failed"))
	repeated(t, add("Failed"))
	require.ErrorIs(t, add("Ready"), lifecycle.ErrInvalid)
	require.ErrorIs(t, add("Flying"), fsm.ErrUnknownState)
}

// asked counts the searches for requests. They fail while err is set.
type asked struct {
	*hooked
	count int
	err   error
}

func (s *asked) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	s.count++
	if s.err != nil {
		return lifecycle.HistoryRow{}, s.err
	}
	return s.hooked.Requested(ctx, machine, request)
}

// TestBadRequestIsNotSearched: the store never sees a request that cannot be valid.
func TestBadRequestIsNotSearched(t *testing.T) {
	_, hooked := vms(t)
	store := &asked{hooked: hooked}
	m := lifecycle.Must(sizedVM, store, nil)
	for _, id := range []string{"\x00", "\xff", strings.Repeat("x", 256)} {
		_, err := m.Create(t.Context(), "a", "create", user, size{}, named(id, ""))
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	require.Zero(t, store.count)
}

// TestRequestInAnOutage: while the store does not answer whose row has the request,
// nothing is known about it.
func TestRequestInAnOutage(t *testing.T) {
	_, hooked := vms(t)
	store := &asked{hooked: hooked}
	m := lifecycle.Must(sizedVM, store, nil)
	hooked.onCommit = func(int, *lifecycle.Commit, func() error) error {
		store.err = lifecycle.ErrUnavailable
		return &lifecycle.RepeatedError{Row: lifecycle.HistoryRow{Key: lifecycle.Key{Machine: "vm", ID: "b"}, Request: "r1"}}
	}
	_, err := m.Create(t.Context(), "a", "create", user, size{}, named("r1", ""))
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.NotErrorIs(t, err, lifecycle.ErrRepeated)
}

// TestSimultaneousRequests: of equal requests at the same moment one is accepted, and
// every other one is answered as a repetition, also if the objects differ.
func TestSimultaneousRequests(t *testing.T) {
	m, _ := vms(t)
	ready(t, m, "a")
	for _, x := range []struct {
		name string
		call func(i int) error
	}{
		{"fire", func(int) error { _, err := m.Fire(t.Context(), "a", "update", user, named("r1", "")); return err }},
		{"create", func(i int) error {
			_, err := m.Create(t.Context(), "new "+string(rune('a'+i)), "create", user, size{}, named("r2", ""))
			return err
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			const n = 40
			errs := make([]error, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { errs[i] = x.call(i) })
			}
			all.Wait()
			accepted := 0
			for _, err := range errs {
				if err == nil {
					accepted++
					continue
				}
				repeated(t, err)
			}
			require.Equal(t, 1, accepted)
		})
	}
}

// TestRepeatedAfterALoad: an equal request commits after this one has looked for it.
func TestRepeatedAfterALoad(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	store.reset()
	store.afterGet = func(n int) {
		if n == 1 {
			fire(t, store.others(), "a", "update", user, named("r1", ""))
		}
	}
	_, err := m.Fire(t.Context(), "a", "update", user, named("r1", ""))
	require.EqualValues(t, 2, repeated(t, err).Operation)
}

// TestUnknownOutcomeOfARequest: the answer to a request with an id is lost for good. It was
// written, and is no repetition.
func TestUnknownOutcomeOfARequest(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	store.reset()
	store.onCommit = func(n int, c *lifecycle.Commit, _ func() error) error {
		if n == 1 {
			return store.lose(t, c)
		}
		return lifecycle.ErrUnknownOutcome
	}
	_, err := m.Fire(t.Context(), "a", "update", user, named("r1", ""))
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	require.NotErrorIs(t, err, lifecycle.ErrRepeated)
}

// TestRepeatedDo: a repeated Do is recognized while the work of the first one runs, also if
// the object's queue has no room.
func TestRepeatedDo(t *testing.T) {
	q := queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1})
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
	stopped(t, m, "a")
	end := make(chan struct{})
	work := lifecycle.Func(func(context.Context) error { <-end; return nil })
	ticket := do(t, m, "a", "start", user, work, named("r1", ""))
	for range 2 {
		_, err := m.Do(t.Context(), "a", "start", user, work, named("r1", ""))
		require.Equal(t, ticket.Operation(), repeated(t, err).Operation)
	}
	close(end)
	wait(t, ticket)
}
