package lock

import (
	"errors"
	"time"
)

// Observer is told what a [Tree] does; see [Config].Observer. A nil function is
// not called. Functions are called after the fact, in the goroutine that caused
// it and with no lock held; they can undo nothing, and may be called from many
// goroutines at once. Events of one grant may be told in another order than
// they happened: a Token tells.
type Observer struct {
	Granted  func(Granted)
	Refused  func(Refused)
	Waiting  func(Waiting)
	Revoked  func(Revoked)
	Released func(Released)
}

// Granted is a request that is held from now on, or a grant that was upgraded
// and has a new token. A repeated acquisition is not told.
type Granted struct {
	Options
	Requests []Request
	Token    Token
	Waited   time.Duration
}

// Refused is a request that was not granted, also one that waited in vain.
type Refused struct {
	Options
	Requests []Request
	Err      error // a [ConflictError], except of Try, where it is ErrConflict
}

// Waiting is a request that has joined the queue.
type Waiting struct {
	Options
	Requests []Request
	Holders  []Holder // who is in the way, as in a [ConflictError]
	More     bool     // and there are more of them
}

// Revoked is a grant whose holder was asked to stop. It is held until it is
// released.
type Revoked struct {
	Options
	Token  Token
	Reason string
}

// Released is a grant that has ended.
type Released struct {
	Options
	Requests []Request
	Token    Token
	Held     time.Duration // since it was granted or last upgraded
	Err      error         // nil, or the [LostError] if it was broken
}

// granted makes the event, if somebody wants it. The tree is locked.
func (t *Tree) granted(c *claim, waited time.Duration) *Granted {
	if o := t.config.Observer; o == nil || o.Granted == nil {
		return nil
	}
	return &Granted{Options: c.options, Requests: c.present(), Token: c.token, Waited: waited}
}

// released makes the event, if somebody wants it. The tree is locked.
func (t *Tree) released(c *claim) *Released {
	if o := t.config.Observer; o == nil || o.Released == nil {
		return nil
	}
	why := c.cause
	if c.held != nil {
		// Not what Break set out to do: the holder can have unlocked it first, or
		// unlock it, being told, before Break does. No Held locks a tree.
		why = c.held.loss()
	}
	return &Released{Options: c.options, Requests: c.present(), Token: c.token, Held: t.clock() - c.since, Err: why}
}

func (t *Tree) tellRefused(err error, options *Options) {
	if o := t.config.Observer; o != nil && o.Refused != nil {
		e := Refused{Options: *options, Err: err}
		if conflict, ok := errors.AsType[*ConflictError](err); ok {
			e.Requests = conflict.Requests
		}
		o.Refused(e)
	}
}

func (t *Tree) tellRefusedTry(r Request) {
	if o := t.config.Observer; o.Refused != nil {
		o.Refused(Refused{Requests: []Request{r}, Err: ErrConflict})
	}
}

// waitingEvent makes the event, if somebody wants it. The tree is locked.
func (t *Tree) waitingEvent(c *claim) *Waiting {
	if o := t.config.Observer; o == nil || o.Waiting == nil {
		return nil
	}
	refused := t.refusal(&t.trie.root, c.asked, &c.options, nil, c)
	return &Waiting{Options: c.options, Requests: refused.Requests, Holders: refused.Holders, More: refused.More}
}

func (t *Tree) tellReleased(event *Released) {
	if event != nil {
		t.config.Observer.Released(*event)
	}
}
