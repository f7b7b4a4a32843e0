package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// network makes the store of the test one whose connections can be cut.
func (t *tester) network() Network {
	t.Helper()
	t.needsConfig("Network", t.config.Network != nil)
	store, network := t.config.Network(t.TB)
	t.useOnly(store)
	return network
}

// resolve sends a commit with an unknown outcome again until the store returns its
// outcome.
func (t *tester) resolve(c *lifecycle.Commit) (written bool) {
	t.Helper()
	t.eventually("a commit with an unknown outcome", func() error {
		twin := clone(c)
		err := t.send(twin)
		switch {
		case err == nil:
			c.Changes, written = twin.Changes, true
		case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrPrecondition):
			return nil // the store would recognize the token of a written commit
		}
		return err
	})
	return written
}

// series is a series of commits without another writer. They create, move and remove
// two objects together, or one object if the store takes no more.
type series struct {
	*tester
	records  []lifecycle.StoredRecord // as they are
	messages []lifecycle.Message      // of the commits that were written
	n        int
}

func (t *tester) startSeries() *series {
	t.Helper()
	s := &series{tester: t, records: []lifecycle.StoredRecord{t.put("a", idle)}}
	if t.has.Changes > 1 {
		s.records = append(s.records, t.get(key("b")))
	}
	return s
}

func (s *series) next() *lifecycle.Commit {
	s.n++
	c := commitOf()
	for _, r := range s.records {
		ch := change(r, []string{idle, moving}[s.n%2])
		if s.n%4 == 3 && r.Exists() {
			ch = removal(r)
		}
		ch.To.Reason = fmt.Sprint("commit ", s.n)
		c.Changes = append(c.Changes, ch)
	}
	if s.has.Messages {
		c.Messages = []lifecycle.Message{{Topic: "t", Payload: fmt.Append(nil, "commit ", s.n)}}
	}
	return c
}

// judge requires that the error of a commit is true: written if it is nil, not written
// if it is another error than ErrUnknownOutcome, and never a conflict.
func (s *series) judge(c *lifecycle.Commit, err error) {
	s.Helper()
	require.NotErrorIs(s, err, lifecycle.ErrConflict, "a commit without another writer")
	written, returned := err == nil, err
	if errors.Is(err, lifecycle.ErrUnknownOutcome) {
		written = s.resolve(c)
	}
	if written {
		s.messages = append(s.messages, c.Messages...)
	}
	for i, before := range s.records {
		s.eventually("Get", func() (err error) {
			s.records[i], err = s.store().Get(s.Context(), before.Key)
			return err
		})
		what := fmt.Sprintf("a record (Commit has returned: %v, written: %t)", returned, written)
		switch {
		case !written:
			equal(s.tester, before, s.records[i], what)
		case c.Changes[i].Remove:
			require.False(s, s.records[i].Exists(), what)
		default:
			equal(s.tester, c.Changes[i].To, s.records[i], what)
		}
		require.Equal(s, written && s.has.History, s.inHistory(before.Key, c.Token), "the history has %s", what)
	}
}

func (s *series) inHistory(k lifecycle.Key, token lifecycle.Token) (found bool) {
	s.Helper()
	if !s.has.History {
		return false
	}
	s.eventually("History", func() error {
		rows, err := s.store().(lifecycle.Historian).History(s.Context(), k, 0, all)
		for _, row := range rows {
			require.False(s, found && row.Token == token, "a commit is in the history twice")
			found = found || row.Token == token
		}
		return err
	})
	return found
}

func (s *series) finish() {
	s.Helper()
	s.outbox(s.messages, "the series")
}

// mostRequests is more than any call needs.
const mostRequests = 200

// Wherever the connection is cut during a commit, the store returns what is true, or
// ErrUnknownOutcome, but no conflict. The next call uses another connection.
func cutCommits(at Place) func(t *tester) {
	return func(t *tester) {
		network := t.network()
		s := t.startSeries()
		cuts := 0
		for n, missed := 1, 0; missed < 4; n++ { // creation, moves and removal differ
			require.Less(t, n, mostRequests, "requests of one commit")
			for range 4 {
				c := s.next()
				struck := network.Cut(at, n)
				err := t.send(c)
				cut := struck()
				network.Cut(at, 0)
				if missed++; cut {
					missed = 0
					cuts++
				} else {
					require.NoError(t, err, "a commit whose connection was not cut")
				}
				s.judge(c, err)
			}
		}
		require.Positive(t, cuts, "no connection was cut: the store does not use the Network")
		s.finish()
	}
}

// A commit whose context ends while a request or an answer is held up returns before
// that continues. What it returns stays true when the request arrives late.
func contextEndsAtEveryRequest(t *tester) {
	network := t.network()
	s := t.startSeries()
	for _, at := range []Place{BeforeRequest, AfterRequest} {
		for n, reached := 1, true; reached; n++ {
			require.Less(t, n, mostRequests, "requests of one commit")
			c := s.next()
			ctx, cancel := context.WithCancelCause(t.Context())
			returned := make(chan struct{})
			var late atomic.Bool
			settled := network.Hold(at, n, func() {
				cancel(errCause)
				select {
				case <-returned:
				case <-time.After(min(patience, 20*time.Second)):
					late.Store(true)
				}
			})
			err := send(ctx, t.store(), c)
			close(returned)
			reached = settled()
			network.Cut(at, 0)
			cancel(nil)
			require.False(t, late.Load(), "Commit waits for its request %d although its context has ended", n)
			if !reached {
				require.NoError(t, err, "a commit that was not held up")
			}
			t.endedOr(ctx, err)
			s.judge(c, err)
		}
	}
	s.finish()
}

// A read whose connection is cut returns what is there, or an error.
func readsAreRightOrFail(t *tester) {
	network := t.network()
	var want []lifecycle.StoredRecord
	for i := range 5 {
		want = append(want, t.move(t.put(fmt.Sprint("object", i), idle), moving))
	}
	rows := t.rows(want[0].Key, 0, all)
	reads := map[string]func() (string, error){
		"Get": func() (string, error) {
			r, err := t.store().Get(t.Context(), want[0].Key)
			return difference(want[0], r), err
		},
		"List": func() (string, error) {
			found, err := t.store().List(t.Context(), lifecycle.Query{Machine: machine, Limit: 10})
			return difference(want, found), err
		},
	}
	if t.has.History {
		reads["History"] = func() (string, error) {
			got, err := t.store().(lifecycle.Historian).History(t.Context(), want[0].Key, 0, all)
			return difference(rows, got), err
		}
	}
	for name, read := range reads {
		for at := BeforeRequest; at <= InAnswer; at++ {
			for n, cut := 1, true; cut; n++ {
				require.Less(t, n, mostRequests, "requests of one read")
				struck := network.Cut(at, n)
				wrong, err := read()
				cut = struck()
				network.Cut(at, 0)
				if err == nil {
					require.Empty(t, wrong, "the result of %s, cut %v %d", name, at, n)
				} else {
					require.True(t, cut, "%s fails although its connection was not cut: %v", name, err)
				}
				t.eventually(name, func() error { _, err := read(); return err })
			}
		}
	}
}

// A commit with an owner does not wait for a commit that changes the owner's record,
// wherever that is held up.
func ownerIsReadWithoutWaiting(t *tester) {
	network := t.network()
	t.needsConfig("Second", !t.config.Exclusive)
	t.needsChanges(2)
	other, o := t.second(), owner("process", 1)
	beat, a, b := t.join(o, alive), t.put("a", idle), t.put("b", idle)
	for n, reached := 1, true; reached; n++ {
		require.Less(t, n, mostRequests, "requests of one commit")
		var err error
		settled := network.Hold(BeforeRequest, n, func() {
			ctx, cancel := context.WithTimeout(t.Context(), min(patience, 20*time.Second))
			defer cancel()
			c := commitOf(change(a, moving))
			c.Owner = o
			err = send(ctx, other, c)
			a = c.Changes[0].To
		})
		c := commitOf(takeOver(beat, "", 0), change(b, moving)) // one change may be one request
		held := t.send(c)
		reached = settled()
		require.NoError(t, err, "a commit with an owner, while request %d of a heartbeat is held up", n)
		require.NoError(t, held, "a heartbeat")
		beat, b = c.Changes[0].To, c.Changes[1].To
	}
}

// While there is no connection, every call fails, but not with ErrClosed or a conflict.
// When there is a connection again, the same store continues.
func storeRecovers(t *tester) {
	network := t.network()
	r := t.put("a", idle)
	for round := range 3 {
		network.SetDown(true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		errs := t.calls(ctx, r, 1)
		cancel()
		network.SetDown(false)
		for call, err := range errs {
			require.Error(t, err, call)
			require.NotErrorIs(t, err, lifecycle.ErrClosed, call)
			require.NotErrorIs(t, err, lifecycle.ErrConflict, call)
		}
		t.recovers()
		t.unchanged("the connection came back", r)
		r = t.move(r, []string{moving, idle}[round%2])
	}
}

// recovers waits until the store has replaced every broken connection.
func (t *tester) recovers() {
	t.Helper()
	t.eventually("Get", func() error {
		var errs [16]error
		var calls sync.WaitGroup
		for i := range errs {
			calls.Go(func() { _, errs[i] = t.store().Get(t.Context(), key("a")) })
		}
		calls.Wait()
		return errors.Join(errs[:]...)
	})
}

// What was acknowledged is there after the engine was killed and started again, and
// the same store continues.
func restartKeepsEverything(t *tester) {
	t.needsConfig("Restart", t.config.Restart != nil)
	t.keepsEverything("the engine was restarted", func() {
		t.config.Restart(t.TB, t.stores[0])
		t.recovers()
	})
}
