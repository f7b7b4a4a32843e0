package storetest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/lifecycle"
)

// losing replaces what a remote store does about a commit whose answer is lost.
func losing(lost func(r *remote, ctx context.Context, c *lifecycle.Commit, err error) error) func(*remote) {
	return func(r *remote) { r.lost = lost }
}

func networkFaults() []fault {
	isUnwritten := func(_ *remote, ctx context.Context, _ *lifecycle.Commit, err error) error { return why(ctx, err) }
	return []fault{
		{
			name: "no answer is a good answer", demand: "Network/cut_before_a_request",
			remote: losing(func(*remote, context.Context, *lifecycle.Commit, error) error { return nil }),
		},
		{
			name: "no answer is a conflict", demand: "Network/cut_in_a_request",
			remote: losing(func(r *remote, ctx context.Context, c *lifecycle.Commit, _ error) error {
				current, err := r.Get(ctx, c.Changes[0].To.Key)
				return errors.Join(err, &lifecycle.ConflictError{Current: current})
			}),
		},
		{name: "no answer means not written", demand: "Network/lost_answers", remote: losing(isUnwritten)},
		{
			name: "tried again under another token", demand: "Network/lost_answers",
			remote: losing(func(r *remote, ctx context.Context, c *lifecycle.Commit, err error) error {
				c.Token = lifecycle.NewToken()
				return r.settle(ctx, c, err)
			}),
		},
		{
			name: "what is there now tells whether it was written", demand: "Network/cuts_under_load_are_exact",
			// As if nobody else could have moved the object meanwhile.
			remote: losing(func(r *remote, ctx context.Context, c *lifecycle.Commit, err error) error {
				ch := &c.Changes[0]
				now, errGet := r.Get(context.WithoutCancel(ctx), ch.To.Key)
				switch {
				case errGet != nil:
					return errors.Join(lifecycle.ErrUnknownOutcome, err)
				case now.Revision == ch.Expect:
					return why(ctx, err)
				}
				ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = now.Revision, now.ChangedAt, now.Deadline
				return nil
			}),
		},
		{
			name: "the first part of an answer is enough", demand: "Network/cut_in_an_answer",
			remote: func(r *remote) { r.filledHere = true },
		},
		{
			name: "a list ends where its connection does", demand: "Network/reads_are_right_or_fail",
			remote: func(r *remote) { r.halfLists = true },
		},
		{
			name: "what cannot be read is what it was", demand: "Network/reads_are_right_or_fail",
			remote: func(r *remote) { r.olderRead = true },
		},
		{
			name: "who has gone wants nothing written", demand: "Network/contexts_end_at_every_request",
			remote: losing(func(r *remote, ctx context.Context, c *lifecycle.Commit, err error) error {
				if ctx.Err() != nil {
					return lifecycle.Ended(ctx)
				}
				return r.settle(ctx, c, err)
			}),
		},
		{
			name: "contexts are looked at between requests", demand: "Network/contexts_end_at_every_request",
			remote: func(r *remote) { r.deaf = true },
		},
		{
			name: "a lost connection stays lost", demand: "Network/comes_back",
			remote: func(r *remote) { r.broken = true },
		},
		{name: "no answer means not written", demand: "Network/cuts_under_load_are_exact", remote: losing(isUnwritten)},
	}
}

func restartFaults() []fault {
	return []fault{
		{
			name: "nothing survives the engine", demand: "Restart/keeps_what_was_acknowledged",
			engine: func(e *engine) { e.forgets = true },
		},
		{
			name: "tokens do not survive the engine", demand: "Restart/keeps_what_was_acknowledged",
			engine: func(e *engine) { e.tokens = true },
		},
		{
			name: "the last commits are not on disk yet", demand: "Restart/keeps_what_was_acknowledged",
			engine: func(e *engine) { e.loses = 1 },
		},
		{
			name: "the last commits are not on disk yet", demand: "Restart/during_commits_is_exact",
			engine: func(e *engine) { e.loses = 5 },
		},
		{
			name: "nothing survives the engine", demand: "Restart/during_commits_is_exact",
			engine: func(e *engine) { e.forgets = true },
		},
	}
}

func clockFaults() []fault {
	return []fault{
		{
			name: "ages are by the clock of who asks", demand: "Time/by_the_clock_of_the_store",
			remote: func(r *remote) { r.clock = true },
		},
		{
			name: "changes are stamped by who commits", demand: "Time/by_the_clock_of_the_store",
			remote: func(r *remote) { r.stamps = true },
		},
	}
}
