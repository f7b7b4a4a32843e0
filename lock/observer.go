package lock

import (
	"context"
	"time"
)

// Observer is a set of functions that a [Tree] calls after its events; see
// [Config].Observer. A nil function is not called. The functions run without a lock, in the
// goroutine of the call that caused the event, possibly in several goroutines at once. The
// events of one grant may arrive in a different order than they happened; compare their
// tokens.
//
// The context is that of the call that caused the event. For a request that waited,
// that is the Unlock, Downgrade or other call that let it in. [Tree.Try] and
// [Handle.Unlock] have no context; they pass [context.Background].
//
// A panic or runtime.Goexit of a function undoes nothing: the event has happened. All other
// functions that are due are still called, and all waiting requests that are due still
// wake. Then the panic continues in the call that caused the event. If that call is an
// acquisition, its caller never gets the grant; so the tree releases it. Package queue has
// the same rule.
type Observer struct {
	// Granted: a request is held from now on, or an upgrade has a new token. A
	// repeated acquisition is not an event.
	Granted func(context.Context, Acquisition)
	// Refused: a request was not granted, or its wait was cancelled. Bad input and
	// a context that ended before the call are not events.
	Refused func(context.Context, Refused)
	// Waiting: a request has joined the queue.
	Waiting func(context.Context, Waiting)
	// Released: a grant has ended.
	Released func(context.Context, Released)
}

// Acquisition is the event of a grant or an upgrade.
type Acquisition struct {
	Options
	Requests []Request
	Token    Token
	// Replaces is the former token if this is an upgrade of a grant that was held before,
	// and 0 if it is a new grant. The number of grants that are held is the number of
	// events with Replaces 0, minus the number of events of Released.
	Replaces Token
	Waited   time.Duration // of a new grant
}

// Refused is the event of a refusal.
type Refused struct {
	Options
	Requests []Request
	Err      error // a [ConflictError]; of Try, ErrConflict
}

// Waiting is the event of a request that joins the queue.
type Waiting struct {
	Options
	Requests []Request
}

// Released is the event of the end of a grant.
type Released struct {
	Options
	Requests []Request
	Token    Token
	Held     time.Duration // since it was granted or last upgraded
	Err      error         // nil, or the [LostError] if it was broken
}

// event calls an observer function. A nil event calls none.
type event func(context.Context)

// The functions below make an event while the tree is locked. It is called after
// the tree is unlocked.

// bind returns nil if there is no function to call, and then makes no event.
func bind[E any](observe func(context.Context, E), what func() E) event {
	if observe == nil {
		return nil
	}
	e := what()
	return func(ctx context.Context) { observe(ctx, e) }
}

func (t *Tree) grantedEvent(c *claim, waited time.Duration, replaces Token) event {
	return bind(t.config.Observer.Granted, func() Acquisition {
		return Acquisition{Options: c.options, Requests: c.requests(), Token: c.token, Replaces: replaces, Waited: waited}
	})
}

func (t *Tree) waitingEvent(c *claim) event {
	return bind(t.config.Observer.Waiting, func() Waiting { return Waiting{Options: c.options, Requests: c.requests()} })
}

func (t *Tree) releasedEvent(c *claim) event {
	return bind(t.config.Observer.Released, func() Released {
		why := c.cause
		if c.grant != nil {
			// The reason is the Grant's and not that of Break: the holder may have
			// unlocked before Break, or while Break notified it.
			why = c.grant.loss()
		}
		return Released{Options: c.options, Requests: c.requests(), Token: c.token, Held: t.clock() - c.since, Err: why}
	})
}

// observeRefused reports a refusal. The tree is not locked.
func (t *Tree) observeRefused(ctx context.Context, err error, requests []Request, o *Options) {
	if observe := t.config.Observer.Refused; observe != nil {
		observe(ctx, Refused{Options: *o, Requests: requests, Err: err})
	}
}
