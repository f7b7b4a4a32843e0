package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// runFaults are the planted faults of contexts, processes, outages and concurrent calls, by the demand that finds them.
var runFaults = map[string]map[string]fault{
	"Context/ended_is_refused": {
		"not by commits": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			return s.write(context.WithoutCancel(ctx), c)
		}},
		"without the cause": {ended: func(_ string, err error) error {
			if errors.Is(err, context.Canceled) {
				return context.Canceled
			}
			return err
		}},
	},
	"Context/end_during_a_call_is_exact": {
		"written and refused": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			err := s.write(context.WithoutCancel(ctx), c)
			return cmp.Or(err, endedError(ctx))
		}},
		"an empty list": {ended: func(call string, err error) error {
			if call == "List" {
				return nil
			}
			return err
		}, found: func(_ *faulty, _ lifecycle.Query, list []record) []record { return nil }},
	},
	"Close/refuses_calls": {
		"not reads": {ended: func(call string, err error) error {
			if call == "History" {
				return nil
			}
			return err
		}},
	},
	"Kill/keeps_everything": {
		"no messages": {left: func(s *faulty) store {
			_ = s.MemoryStore.Discard(context.Background(), 1)
			return s.second()
		}},
		"nothing": {left: func(*faulty) store { return newFaulty(fault{}) }},
		"not what the process has buffered": {
			after: func(s *faulty, _, sent *commits, err error) error {
				if err == nil {
					s.log = append(s.log, clone(sent))
				}
				return err
			},
			left: func(s *faulty) store {
				if len(s.log) == 0 { // at the beginning
					return s.second()
				}
				left := newFaulty(fault{})
				for _, c := range s.log[:len(s.log)-1] {
					_ = left.MemoryStore.Commit(context.Background(), c)
				}
				return left
			},
		},
	},
	"Outage/calls_are_cut": {
		"written":     written,
		"a conflict":  conflicted,
		"not written": notWritten,
		"sent again under another token": lost(func(r *remote, ctx context.Context, c *commits, _ error) error {
			c.Token = lifecycle.NewToken()
			return r.sendAgain(ctx, c)
		}),
		"a MetadataOnly change is sent again": lost(func(r *remote, ctx context.Context, c *commits, _ error) error {
			return r.sendAgain(ctx, c)
		}),
		"lists come later":          {remote: &remoteFault{later: "List"}},
		"requests come later":       {remote: &remoteFault{later: "Requested"}},
		"recent changes come later": {remote: &remoteFault{later: "Recent"}},

		"a part is enough":  {remote: &remoteFault{partial: true}},
		"an earlier result": {remote: &remoteFault{older: true}},
	},
	"Outage/context_ends_at_every_request": {
		"not written": lost(func(r *remote, ctx context.Context, c *commits, _ error) error {
			return cmp.Or(endedError(ctx), r.sendAgain(ctx, c))
		}),
		"ignored": {remote: &remoteFault{deaf: true}},
	},
	"Outage/owner_is_read_without_waiting": {
		"a lock of the record": {remote: &remoteFault{locks: make(chan struct{}, 1)}},
	},
	"Outage/store_recovers": {
		"stays broken":            {remote: &remoteFault{broken: true}},
		"the error of its driver": {remote: &remoteFault{plain: true}},
	},
	"Outage/close_during_commits_is_exact": {
		"closed is not written": {remote: &remoteFault{closing: true}},
		"close does nothing":    {remote: &remoteFault{open: true}},
	},
	"Outage/restart_keeps_everything": {
		"nothing":     restarting(func(r *remote) { r.engine = lifecycle.NewMemoryStore() }),
		"no tokens":   restarting(func(r *remote) { r.lives++ }),
		"last commit": restarting(func(r *remote) { r.replay(1) }),
	},
	"Concurrent/history_is_linearizable": {
		"reads of an older record": {
			before: func(s *faulty, c *commits) { s.notes[c.Changes[0].To.Key] = s.now(c.Changes[0].To.Key) },
			read: func(s *faulty, r *record) error {
				if old := s.notes[r.Key]; old.Exists() {
					*r = old
				}
				return nil
			},
		},
		"check, then write":     racing(asExpected),
		"a lock of the process": underLock(),
		"a loser gets what it knows": conflicts(func(c *lifecycle.ConflictError) {
			c.Current.Sequence, c.Current.Revision = 0, c.Expect
		}),
		"only the state is compared": racing(func(now record, ch edit) bool { return now.State == ch.From }),
	},
	"Concurrent/one_creation_wins": {
		"check, then create":    racing(func(now record, ch edit) bool { return ch.From == "" && !now.Exists() }),
		"a lock of the process": underLock(),
	},
	"Concurrent/single_writer_never_conflicts": {
		"now and then": {commit: nowAndThen(&lifecycle.ConflictError{})},
		"heartbeats of the owner": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			before := s.now(c.Owner.Key())
			end := time.Now().Add(50 * time.Millisecond) // the next heartbeat is due at once
			for c.Owner.Name != "" && time.Now().Before(end) {
				if now := s.now(c.Owner.Key()); now.Revision != before.Revision {
					return &lifecycle.ConflictError{Current: now}
				}
				time.Sleep(time.Millisecond)
			}
			return s.write(ctx, c)
		}},
	},
	"Concurrent/transactions_in_any_order": {
		"a deadlock": {commit: nowAndThen(errors.New("deadlock found when trying to get lock"))},
	},
	"Concurrent/preconditions_hold_at_the_commit": {
		"checked before": checkedBefore(func(*faulty, lifecycle.Precondition) bool { return true }),
		"no lock without a row": checkedBefore(func(s *faulty, p lifecycle.Precondition) bool {
			return s.now(p.Key).Sequence == 0
		}),
	},
	"Model/random_commits_agree": {
		"a removal clears other deadlines": {before: func(_ *faulty, c *commits) {
			if slices.ContainsFunc(c.Changes, func(ch edit) bool { return ch.Remove }) {
				for i := range c.Changes {
					c.Changes[i].Timeout = 0
				}
			}
		}},
	},
}
