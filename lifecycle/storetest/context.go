package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lifecycle"
)

// errCause is the cause of the contexts that demands cancel.
var errCause = errors.New("storetest: cause of the cancellation")

// calls makes every call of a store and returns the errors by call, without those of calls that
// the store does not support. The limit is that of calls for rows: 0 is for none.
func (t *tester) calls(ctx context.Context, r lifecycle.StoredRecord, limit int, discard ...uint64) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = t.store().Get(ctx, r.Key)
	_, errs["List"] = t.store().List(ctx, lifecycle.Query{Machine: machine, Limit: 1})
	_, errs["List of an unknown machine"] = t.store().List(ctx, lifecycle.Query{Machine: "unknown", Limit: 1})
	errs["Commit of a move"] = send(ctx, t.store(), commitOf(change(r, broken)))
	errs["Commit of a removal"] = send(ctx, t.store(), commitOf(removal(r)))
	errs["Commit of a creation"] = send(ctx, t.store(), commitOf(change(lifecycle.StoredRecord{Key: key("new")}, idle)))
	if t.has.History {
		_, errs["History"] = t.store().(lifecycle.Historian).History(ctx, r.Key, 0, limit)
		_, errs["History after the last number"] = t.store().(lifecycle.Historian).History(ctx, r.Key, math.MaxUint64, limit)
		_, errs["Requested"] = t.store().(lifecycle.Historian).Requested(ctx, machine, "request")
	}
	if t.has.Messages {
		_, errs["Messages"] = t.store().(lifecycle.Outbox).Messages(ctx, limit)
		errs[fmt.Sprintf("Discard of %d messages", len(discard))] = t.store().(lifecycle.Outbox).Discard(ctx, discard...)
	}
	if follower, ok := t.store().(lifecycle.Follower); ok {
		_, errs["Recent"] = follower.Recent(ctx, machine, time.Hour, "", limit)
	}
	maps.DeleteFunc(errs, func(_ string, err error) bool { return errors.Is(err, errors.ErrUnsupported) })
	return errs
}

// A call with a context that has ended returns an error that matches ctx.Err() and its
// cause, and writes and discards nothing.
func endedContextIsRefused(t *tester) {
	c := commitOf(change(t.get(key("a")), idle))
	c.Messages = t.messages("kept")
	t.commit(c)
	r, never := c.Changes[0].To, t.get(key("new"))
	numbers := t.outbox(all, c.Messages, "a commit")
	rows := t.rows(r.Key, 0, all)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	for ctx, cause := range map[context.Context]error{cancelled: errCause, late: context.DeadlineExceeded} {
		for _, limit := range []int{0, all} {
			for call, err := range t.calls(ctx, r, limit, numbers[:min(limit, len(numbers))]...) {
				require.ErrorIs(t, err, ctx.Err(), call)
				require.ErrorIs(t, err, cause, call)
			}
		}
	}
	t.unchanged("refused calls", r, never)
	equal(t, rows, t.rows(r.Key, 0, all), "the history")
	t.outbox(all, c.Messages, "refused calls")
}

// A context may end whenever the store examines it, from the first time to the last. A
// commit is then written if it returns nil, and not written if it returns an error
// other than ErrUnknownOutcome. The error matches the context and its cause. A read is
// right or fails.
func endDuringACallIsExact(t *tester) {
	t.readsDuring(t.endContext)
	t.commitsDuring(4, t.endContext)
}

// endContext is the disturbance that the context ends when the store examines it for the n-th
// time.
func (t *tester) endContext(n int) (context.Context, func() bool) {
	return suitetest.EndWhenExamined(t.Context(), n, errCause)
}

// After Close every call returns ErrClosed, calls for no rows included. Close may be called twice.
func closeRefusesCalls(t *tester) {
	r := t.put("a", idle)
	for _, limit := range []int{0, all} {
		for _, store := range t.stores {
			closer, ok := store.(io.Closer)
			t.needs(ok, "the store is not an io.Closer")
			if err := closer.Close(); err != nil {
				require.ErrorIs(t, err, lifecycle.ErrClosed)
			}
		}
		for call, err := range t.calls(t.Context(), r, limit) {
			require.ErrorIs(t, err, lifecycle.ErrClosed, call)
		}
	}
}

// What was acknowledged is there after the process of the store was killed: records,
// numbers, tokens, history and messages. A process that starts sees nothing that another one,
// which is not closed, has not written yet.
func killKeepsEverything(t *tester) {
	t.needsConfig("Second", !t.config.Exclusive)
	t.keepsEverything("the process was killed", func() { t.use(t.config.Second(t.TB, t.stores[0]), false) })
}

// keepsEverything requires that what was acknowledged is there after an interruption,
// twice, and that the store continues with it.
func (t *tester) keepsEverything(after string, interrupt func()) {
	c := commitOf(t.fullChange(t.get(key("a"))))
	c.Messages = t.messages("one", "two")
	t.commit(c)
	left := t.remove(t.put("b", idle))
	old := t.put("c", idle)
	now := t.move(old, moving)
	for range 2 {
		interrupt()
		t.unchanged(after, c.Changes[0].To, now, left)
		t.finds(query(), "a", "c")
		t.finds(query(moving), "c")
		t.conflict(commitOf(change(old, broken)), "an outdated revision after "+after)
		if t.has.History {
			t.repeat(c, "after "+after)
			equal(t, []lifecycle.HistoryRow{c.Changes[0].Row(c.Token)}, t.rows(key("a"), 0, all), "the history after "+after)
		}
		t.outbox(all, c.Messages, after)
		next := t.move(now, moving)
		require.NotContains(t, []lifecycle.Revision{old.Revision, now.Revision}, next.Revision, "a revision is repeated")
		old, now = now, next
	}
	require.NotEqual(t, left.Revision, t.move(left, idle).Revision)
}
