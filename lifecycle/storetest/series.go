package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// but no conflict. Four in a row are of every kind: a creation, a move, a MetadataOnly change and
// a removal differ.
func (t *tester) commitsDuring(each int, disturbances ...disturbance) {
	s := &series{
		tester: t, records: []lifecycle.StoredRecord{t.put("a", idle)}, requests: t.keepsRequests(), follows: t.follows(),
	}
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
	records  []lifecycle.StoredRecord // as they are
	emitted  []lifecycle.Message      // by the commits that were written
	n        int
	requests bool // the store keeps requests
	follows  bool // the store finds recent changes
}

func (s *series) next() *lifecycle.Commit {
	s.n++
	c := commitOf()
	for i, r := range s.records {
		ch := step(r, s.n)
		ch.To.Reason = fmt.Sprint("commit ", s.n)
		if s.requests {
			ch.Request = fmt.Sprint("request ", s.n, " about ", r.ID)
		}
		if s.n%4 == 2 && i == 0 && r.Exists() {
			ch = takeOver(r, "another", 1)
		}
		c.Changes = append(c.Changes, ch)
	}
	c.Messages = s.messages(fmt.Sprint("of commit ", s.n))
	return c
}

// judge requires that the error of a commit is true: written if it is nil, not written
// if it is another error than ErrUnknownOutcome, and never a conflict. Get, List, History,
// Requested and Recent agree about it.
func (s *series) judge(c *lifecycle.Commit, err error) {
	require.NotErrorIs(s, err, lifecycle.ErrConflict, "a commit without another writer: it conflicts with itself if the store has sent it again, "+
		"and has not found its token (or there is none: see StoredChange.MetadataOnly)")
	written := err == nil
	if errors.Is(err, lifecycle.ErrUnknownOutcome) {
		s.eventually("a commit with an unknown outcome", func() error {
			again := s.send(c)
			if written = again == nil; errors.Is(again, lifecycle.ErrConflict) {
				// The store would recognize the token of a written commit, but for a MetadataOnly change.
				written = s.overtaken(c)
				return nil
			}
			return again
		})
	}
	if written {
		s.emitted = append(s.emitted, c.Messages...)
	}
	for i, before := range s.records {
		ch, now := c.Changes[i], s.get(before.Key)
		what := fmt.Sprintf("a record (Commit has returned: %v, written: %t)", err, written)
		want := before
		var rows []lifecycle.HistoryRow
		if written {
			want = ch.To
			if s.has.History && !ch.MetadataOnly {
				rows = append(rows, ch.Row(c.Token))
			}
		}
		if s.records[i] = now; written && ch.Remove {
			require.False(s, now.Exists(), what)
		} else {
			equal(s.tester, want, now, what)
		}
		equal(s.tester, rows, s.rows(before.Key, before.Sequence, all), "the history with "+what)
		s.found(ch, now, rows, what)
	}
}

// overtaken reports whether a commit that was sent again was written before, and not by that. It
// conflicts with itself if it has a MetadataOnly change. The results are then those of the records.
func (s *series) overtaken(c *lifecycle.Commit) bool {
	if !slices.ContainsFunc(c.Changes, func(ch lifecycle.StoredChange) bool { return ch.MetadataOnly }) {
		return false
	}
	for i := range c.Changes {
		to := &c.Changes[i].To
		now := s.get(to.Key)
		to.Revision, to.ChangedAt, to.Deadline = now.Revision, now.ChangedAt, now.Deadline
	}
	return true
}

// found requires that List, Requested and Recent find the record and the row that Get and History
// have returned after a change, and no others.
func (s *series) found(ch lifecycle.StoredChange, now lifecycle.StoredRecord, rows []lifecycle.HistoryRow, what string) {
	var want []lifecycle.StoredRecord
	if now.Exists() {
		want = append(want, now)
	}
	list := slices.DeleteFunc(s.list(query()), func(r lifecycle.StoredRecord) bool { return r.Key != now.Key })
	equal(s.tester, want, list, "the list with "+what)
	if ch.Request != "" {
		var want lifecycle.HistoryRow
		if len(rows) > 0 {
			want = rows[0]
		}
		row, err := s.store().(lifecycle.Historian).Requested(s.Context(), machine, ch.Request)
		require.NoError(s, err, "Requested")
		equal(s.tester, want, row, "the row of the request with "+what)
	}
	if s.follows && len(rows) > 0 {
		recent, err := s.store().(lifecycle.Follower).Recent(s.Context(), machine, hour, "", all)
		require.NoError(s, err, "Recent")
		require.Contains(s, recent, lifecycle.ChangedObject{ID: now.ID, Sequence: ch.To.Sequence}, "the recent changes with "+what)
	}
}
