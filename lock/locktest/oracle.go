package locktest

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// oracle is the expected content of a locker, in the simplest form: a list of
// acquisitions, held or waiting, in the order of their arrival.
type oracle struct {
	maxWaiters int
	present    []*claim
}

// claim is one acquisition, present or ended.
type claim struct {
	options lock.Options
	asked   []lock.Request // canonical, of the first call
	has     []lock.Request
	waiting bool
	token   lock.Token // 0 while it waits
	fault   error      // nil, ErrRevoked, ErrLost or ErrNotHeld
	revoked bool       // or lost
	reason  string     // of the revocation or loss
	calls   []*call    // that wait for it
	grants  []*lock.Grant
	works   []context.Context // one for each grant
}

// answer is what a call is expected to return.
type answer struct {
	kind     string // see kindOf
	requests []lock.Request
	holders  []lock.Holder // of a refusal
	claim    *claim        // of a grant or a wait
}

// blockers returns the present requests that conflict with rs, in the order of
// arrival. The claim own does not conflict with itself. If it waits, later claims
// do not conflict with it.
func (o *oracle) blockers(rs []lock.Request, own *claim) (found []lock.Holder) {
	for _, c := range o.present {
		if c == own && own.waiting {
			break
		}
		for _, r := range c.has {
			if c != own && conflict(rs, []lock.Request{r}) {
				found = append(found, c.holder(r))
			}
		}
	}
	return found
}

func (c *claim) holder(r lock.Request) lock.Holder {
	return lock.Holder{
		Path: r.Path, Mode: r.Mode, Waiting: c.waiting, Token: c.token,
		ID: c.options.ID, Owner: c.options.Owner, Reason: c.options.Reason,
	}
}

// holders returns all present requests in a scope.
func (o *oracle) holders(p lock.Path, s lock.Scope) (found []lock.Holder) {
	for _, c := range o.present {
		for _, r := range c.has {
			if scopeOf(r.Path, p)&s != 0 {
				found = append(found, c.holder(r))
			}
		}
	}
	return found
}

// acquire returns the expected answer of an acquisition and keeps it if it is
// granted or waits.
func (o *oracle) acquire(opts lock.Options, asked []lock.Request, wait bool) answer {
	known := o.withID(opts.ID)
	switch {
	case known == nil:
	case !slices.Equal(known.asked, asked), !known.waiting && !covers(known.has, asked):
		var holders []lock.Holder
		for _, r := range known.has {
			holders = append(holders, known.holder(r))
		}
		return refusal("in-use", asked, holders, opts.Owner)
	case !known.waiting:
		return answer{kind: "ok", claim: known}
	case wait:
		return answer{kind: "waiting", claim: known}
	}
	blockers := o.blockers(asked, known)
	_, waiting := o.counts()
	c := &claim{options: opts, asked: asked, has: slices.Clone(asked)}
	switch {
	case len(blockers) == 0:
		o.present = append(o.present, c)
		return answer{kind: "ok", claim: c}
	case !wait:
		return refusal("conflict", asked, blockers, opts.Owner)
	case o.maxWaiters > 0 && waiting >= o.maxWaiters:
		return refusal("queue-full", asked, blockers, opts.Owner)
	}
	c.waiting = true
	o.present = append(o.present, c)
	return answer{kind: "waiting", requests: asked, holders: blockers, claim: c}
}

func refusal(kind string, rs []lock.Request, holders []lock.Holder, owner string) answer {
	for i := range holders {
		holders[i].Mine = owner != "" && holders[i].Owner == owner
	}
	return answer{kind: kind, requests: rs, holders: holders}
}

// upgrade returns the expected answer of an upgrade, and raises the claim if it is
// granted.
func (o *oracle) upgrade(c *claim, m lock.Mode) answer {
	if c.fault != nil {
		return answer{kind: kindOf(c.fault)}
	}
	after := raiseAll(c.has, m)
	var raised []lock.Request
	for i := range after {
		if after[i] != c.has[i] {
			raised = append(raised, after[i])
		}
	}
	// Only the raised requests can conflict.
	if blockers := o.blockers(raised, c); len(blockers) > 0 {
		return refusal("conflict", raised, blockers, c.options.Owner)
	}
	c.has = after
	return answer{kind: "ok", requests: raised}
}

// downgrade returns the expected answer of a downgrade, and lowers the claim if it
// is granted.
func (o *oracle) downgrade(c *claim, m lock.Mode) answer {
	switch {
	case c.fault != nil:
		return answer{kind: kindOf(c.fault)}
	case !allCover(c.has, m):
		return answer{kind: "invalid"}
	}
	c.has = lowerAll(c.has, m)
	return answer{kind: "ok"}
}

// end takes a claim out, for a reason that its grants report from now on.
func (o *oracle) end(c *claim, fault error) {
	c.fault = fault
	o.present = slices.DeleteFunc(o.present, func(other *claim) bool { return other == c })
}

// wake grants the claims without blockers, and returns them in the order of their
// arrival.
func (o *oracle) wake() (woken []*claim) {
	for _, c := range o.present {
		if c.waiting && len(o.blockers(c.has, c)) == 0 {
			c.waiting = false
			woken = append(woken, c)
		}
	}
	return woken
}

func (o *oracle) withID(id string) *claim {
	i := slices.IndexFunc(o.present, func(c *claim) bool { return id != "" && c.options.ID == id })
	if i < 0 {
		return nil
	}
	return o.present[i]
}

func (o *oracle) counts() (held, waiting int) {
	for _, c := range o.present {
		if c.waiting {
			waiting++
		} else {
			held++
		}
	}
	return held, waiting
}

// The rule of conflicts is that of package lock.

func conflict(as, bs []lock.Request) bool {
	return slices.ContainsFunc(as, func(a lock.Request) bool { return slices.ContainsFunc(bs, a.Conflicts) })
}

// canonical returns a list as a grant shows it. The list is valid.
func canonical(rs []lock.Request) []lock.Request {
	list, err := lock.Normalize(rs)
	if err != nil {
		panic("locktest: " + err.Error())
	}
	return list
}

// raiseAll returns requests raised to the joins of their modes with m.
func raiseAll(rs []lock.Request, m lock.Mode) []lock.Request {
	raised := slices.Clone(rs)
	for i := range raised {
		raised[i].Mode = lock.Join(raised[i].Mode, m)
	}
	return raised
}

// lowerAll returns requests lowered to a mode.
func lowerAll(rs []lock.Request, m lock.Mode) []lock.Request {
	lowered := slices.Clone(rs)
	for i := range lowered {
		lowered[i].Mode = m
	}
	return lowered
}

func allCover(rs []lock.Request, m lock.Mode) bool {
	return !slices.ContainsFunc(rs, func(r lock.Request) bool { return !r.Mode.Covers(m) })
}

// covers reports whether requests are as strong as others of the same nodes.
func covers(has, asked []lock.Request) bool {
	return slices.EqualFunc(has, asked, func(h, a lock.Request) bool { return h.Mode.Covers(a.Mode) })
}

// scopeOf returns where a path lies relative to another one, and 0 if it lies
// beside it.
func scopeOf(p, relative lock.Path) lock.Scope {
	switch {
	case p == relative:
		return lock.At
	case p.Covers(relative):
		return lock.Above
	case relative.Covers(p):
		return lock.Below
	}
	return 0
}
