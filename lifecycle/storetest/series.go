package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// disturbance disturbs the next call at its n-th place, such as a request to the engine. The
// call gets the context. end ends the disturbance and reports whether the call has reached
// the place.
type disturbance func(n int) (ctx context.Context, end func() (struck bool))

// mostPlaces is more than any call needs. A store that examines a context more often does so
// in a loop.
const mostPlaces = 100

// disturbed makes a call that is disturbed at its n-th place. If the context of the call ends,
// the call must return nil, ErrUnknownOutcome or the error of the context. A call that does not
// reach the place must succeed. Afterwards the store must have a connection again.
func (t *tester) disturbed(disturb disturbance, n int, call func(ctx context.Context) error) (struck bool, err error) {
	ctx, end := disturb(n)
	err = call(ctx)
	struck = end()
	switch {
	case !struck:
		require.NoError(t, err, "a call that was not disturbed")
	case err != nil && ctx.Err() != nil && !errors.Is(err, lifecycle.ErrUnknownOutcome):
		require.ErrorIs(t, err, ctx.Err(), "the error of a call whose context has ended")
		require.ErrorIs(t, err, errCause, "the error of a call whose context has ended, and the cause")
	}
	t.recovers(1)
	return struck, err
}

// commitsDuring sends some commits that are disturbed at their first place, some at their second
// one, and so on, until none reaches the place. Each returns what is true, or ErrUnknownOutcome,
// but no conflict. Four in a row are of every kind: creation, moves and removal differ.
func (t *tester) commitsDuring(each int, disturbances ...disturbance) {
	s := &series{tester: t, records: []lifecycle.StoredRecord{t.put("a", idle)}}
	if t.has.Changes > 1 {
		s.records = append(s.records, t.get(key("b")))
	}
	for _, disturb := range disturbances {
		n := 1
		for missed := 0; missed < each && n < mostPlaces; n++ {
			for range each {
				c := s.next()
				struck, err := t.disturbed(disturb, n, func(ctx context.Context) error { return send(ctx, t.store(), c) })
				if missed++; struck {
					missed = 0
				}
				s.judge(c, err)
			}
		}
		require.Greater(t, n, 2, "no commit was disturbed: the store does not use the Network, or the context")
	}
	t.outbox(all, s.emitted, "the series")
}

// readsDuring makes reads that are disturbed at every place. Each returns what is there, or an
// error.
func (t *tester) readsDuring(disturb disturbance) {
	var want []lifecycle.StoredRecord
	for i := range 5 {
		want = append(want, t.move(t.put(fmt.Sprint("object", i), idle), moving))
	}
	wantRows := t.rows(want[0].Key, 0, all)
	for n, reached := 1, true; reached && n < mostPlaces; n++ {
		var r lifecycle.StoredRecord
		var list []lifecycle.StoredRecord
		var rows []lifecycle.HistoryRow
		struck, err := t.disturbed(disturb, n, func(ctx context.Context) (err error) {
			if r, err = t.store().Get(ctx, want[0].Key); err != nil {
				return err
			}
			if list, err = t.store().List(ctx, lifecycle.Query{Machine: machine, Limit: 10}); err != nil || !t.has.History {
				return err
			}
			rows, err = t.store().(lifecycle.Historian).History(ctx, r.Key, 0, all)
			return err
		})
		if reached = struck; err == nil {
			what := fmt.Sprint("the result of reads that were disturbed at place ", n)
			equal(t, want[0], r, what)
			equal(t, want, list, what)
			equal(t, wantRows, rows, what)
		}
	}
}

// series is a series of commits without another writer. They create, move and remove
// two objects together, or one object if the store takes no more.
type series struct {
	*tester
	records []lifecycle.StoredRecord // as they are
	emitted []lifecycle.Message      // by the commits that were written
	n       int
}

func (s *series) next() *lifecycle.Commit {
	s.n++
	c := commitOf()
	for _, r := range s.records {
		ch := step(r, s.n)
		ch.To.Reason = fmt.Sprint("commit ", s.n)
		c.Changes = append(c.Changes, ch)
	}
	c.Messages = s.messages(fmt.Sprint("of commit ", s.n))
	return c
}

// judge requires that the error of a commit is true: written if it is nil, not written
// if it is another error than ErrUnknownOutcome, and never a conflict.
func (s *series) judge(c *lifecycle.Commit, err error) {
	require.NotErrorIs(s, err, lifecycle.ErrConflict, "a commit without another writer")
	written := err == nil
	if errors.Is(err, lifecycle.ErrUnknownOutcome) {
		s.eventually("a commit with an unknown outcome", func() error {
			again := s.send(c)
			if written = again == nil; errors.Is(again, lifecycle.ErrConflict) {
				return nil // the store would recognize the token of a written commit
			}
			return again
		})
	}
	if written {
		s.emitted = append(s.emitted, c.Messages...)
	}
	for i, before := range s.records {
		now := s.get(before.Key)
		what := fmt.Sprintf("a record (Commit has returned: %v, written: %t)", err, written)
		want := before
		var rows []lifecycle.HistoryRow
		if written {
			want = c.Changes[i].To
			if s.has.History {
				rows = append(rows, c.Changes[i].Row(c.Token))
			}
		}
		if s.records[i] = now; written && c.Changes[i].Remove {
			require.False(s, now.Exists(), what)
		} else {
			equal(s.tester, want, now, what)
		}
		equal(s.tester, rows, s.rows(before.Key, before.Sequence, all), "the history with "+what)
	}
}
