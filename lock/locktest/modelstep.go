package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lock"
)

func (m *model) options(s step) *lock.Options {
	m.owners++
	o := &lock.Options{Owner: fmt.Sprint("owner ", m.owners), Reason: fmt.Sprint("step ", s.kind)}
	if s.id > 0 {
		o.ID = fmt.Sprint("id ", s.id)
	}
	return o
}

// acquire is a try or a lock.
func (m *model) acquire(s step) error {
	o := m.options(s)
	c := &claim{options: *o, asked: canonical(s.rs)}
	c.has = slices.Clone(c.asked)
	known := m.oracle.withID(o.ID)
	switch {
	case known == nil:
	case !slices.Equal(known.asked, c.asked), !known.waiting && !allAtLeast(known.has, c.asked):
		return m.inUse(s, o, known)
	case known.waiting && s.kind == tryStep:
		err := m.try(s, o, nil)
		return m.refusal(err, lock.ErrConflict, c, m.oracle.inTheWay(c.has, known))
	case known.waiting && !m.bubble:
		return nil // nothing tells when the second call has joined the first
	case known.waiting:
		m.waits = append(m.waits, &wait{known, m.call(s, o)})
		return nil
	default:
		return m.same(s, o, known)
	}

	if s.kind == tryStep {
		var h *lock.Held
		err := m.try(s, o, &h)
		if inTheWay := m.oracle.inTheWay(c.has, nil); len(inTheWay) > 0 {
			return m.refusal(err, lock.ErrConflict, c, inTheWay)
		}
		if err != nil {
			return fmt.Errorf("with nobody in the way it is refused: %w", err)
		}
		m.oracle.arrive(c)
		g := &grant{claim: c, helds: []*lock.Held{h}}
		m.grants = append(m.grants, g)
		return m.granted(g)
	}

	call := m.call(s, o)
	if !m.oracle.arrive(c) {
		m.waits = append(m.waits, &wait{c, call})
		if fault := m.queued(m.Context(), m.l, call); fault != "" {
			return errors.New(fault)
		}
		return nil
	}
	if fault := m.back(call); fault != "" {
		return fmt.Errorf("%s, though nobody is in its way", fault)
	}
	if call.err != nil || call.panics != nil {
		return fmt.Errorf("with nobody in the way the wait ends: %w, panic: %v", call.err, call.panics)
	}
	g := &grant{claim: c, helds: []*lock.Held{call.held}}
	m.grants = append(m.grants, g)
	return m.granted(g)
}

// try asks without waiting; the grant goes to h.
func (m *model) try(s step, o *lock.Options, h **lock.Held) error {
	var held *lock.Held
	var err error
	if s.list || len(s.rs) > 1 {
		held, err = m.l.TryLockAll(m.Context(), s.rs, o)
	} else {
		held, err = m.l.TryLock(m.Context(), s.rs[0], o)
	}
	if h != nil {
		*h = held
	}
	return err
}

func (m *model) call(s step, o *lock.Options) *call {
	return m.begin(m.Context(), m.l, s.rs, o)
}

// repeated makes a call that is to be answered at once, waiting or not.
func (m *model) repeated(s step, o *lock.Options) (h *lock.Held, err error) {
	if s.kind == tryStep {
		err = m.try(s, o, &h)
		return h, err
	}
	call := m.call(s, o)
	if fault := m.back(call); fault != "" {
		return nil, errors.New(fault)
	}
	return call.held, call.err
}

// inUse asks with an id that is in use for something else.
func (m *model) inUse(s step, o *lock.Options, known *claim) error {
	_, err := m.repeated(s, o)
	var want []lock.Holder
	for _, r := range known.has {
		want = append(want, known.holder(r))
	}
	return m.refusal(err, lock.ErrIDInUse, &claim{options: *o, asked: canonical(s.rs)}, want)
}

// same asks with an id that holds the same already.
func (m *model) same(s step, o *lock.Options, known *claim) error {
	h, err := m.repeated(s, o)
	if err != nil || h == nil {
		return fmt.Errorf("an id that is granted, repeated: %w", err)
	}
	i := slices.IndexFunc(m.grants, func(g *grant) bool { return g.claim == known })
	g := m.grants[i]
	if h.Token() != g.token || !slices.Equal(h.Requests(), g.has) {
		return fmt.Errorf("an id that is granted as %s, token %d, repeated: %s, token %d", g.has, g.token, h.Requests(), h.Token())
	}
	g.helds = append(g.helds, h)
	return nil
}

// refusal compares an error with the one that is due.
func (m *model) refusal(err, reason error, c *claim, want []lock.Holder) error {
	conflict, ok := errors.AsType[*lock.ConflictError](err)
	switch {
	case err == nil:
		return fmt.Errorf("%s is granted, with %v in the way", c.asked, want)
	case !ok || !errors.Is(err, reason):
		return fmt.Errorf("the refusal is no *ConflictError that matches %q: %w", reason, err)
	case !slices.Equal(conflict.Requests, c.asked):
		return fmt.Errorf("the refusal of %s is about %s", c.asked, conflict.Requests)
	}
	if fault := differ(conflict.Holders, want, conflict.More); fault != "" {
		return fmt.Errorf("%s is refused: %s", c.asked, fault)
	}
	return nil
}

// differ says how holders differ from those that are wanted, of which some may
// be left out if more are said to be.
func differ(got, want []lock.Holder, more bool) string {
	i := 0
	for _, h := range got {
		if h.Since.IsZero() {
			return fmt.Sprintf("since when %v is there is not told", h)
		}
		h.Since = time.Time{}
		for i < len(want) && want[i] != h && more {
			i++
		}
		if i == len(want) || want[i] != h {
			return fmt.Sprintf("the holders are %+v, not %+v", got, want)
		}
		i++
	}
	if len(got) == 0 && len(want) > 0 || !more && i < len(want) || more && len(got) >= len(want) {
		return fmt.Sprintf("the holders are %+v, more: %t, not %+v", got, more, want)
	}
	return ""
}

func (m *model) cancel(i int) error {
	w := m.waits[i]
	m.waits = slices.Delete(m.waits, i, i+1)
	w.call.cancel(errGivenUp)
	if fault := m.back(w.call); fault != "" {
		return fmt.Errorf("after its context was cancelled: %s", fault)
	}
	if !errors.Is(w.call.err, errGivenUp) {
		return fmt.Errorf("the error of a cancelled wait does not say the cause: %w", w.call.err)
	}
	if err := m.refusal(w.call.err, context.Canceled, w.claim, m.oracle.inTheWay(w.has, w.claim)); err != nil {
		return err
	}
	if !slices.ContainsFunc(m.waits, func(other *wait) bool { return other.claim == w.claim }) {
		m.oracle.leave(w.claim)
	}
	return nil
}

func (m *model) unlock(g *grant, pick int) error {
	h := g.helds[pick%len(g.helds)]
	err := h.Unlock(m.Context())
	switch {
	case !errors.Is(err, g.over) && errors.Is(g.over, lock.ErrLost):
		return fmt.Errorf("held.Unlock of a lost grant of %s: %w", g.has, err)
	case err != nil && !errors.Is(g.over, lock.ErrLost):
		return fmt.Errorf("held.Unlock of %s: %w", g.has, err)
	}
	if g.over == nil {
		g.over = lock.ErrNotHeld
		m.oracle.leave(g.claim)
	}
	return m.over(g)
}

// over demands that all handles of a grant know of its end, or of its revocation.
func (m *model) over(g *grant) error {
	want := g.over
	if want == nil && g.revoked {
		want = lock.ErrRevoked
	}
	for _, h := range g.helds {
		err := h.Check()
		if !errors.Is(err, want) {
			return fmt.Errorf("held.Check of %s is to be %v: %w", g.has, want, err)
		}
		if lost, ok := errors.AsType[*lock.LostError](err); ok && (lost.Token != g.token || lost.Reason != g.reason) {
			return fmt.Errorf("held.Check of %s, token %d, taken away for %q: %w", g.has, g.token, g.reason, err)
		}
		if !slices.Equal(h.Requests(), g.has) {
			return fmt.Errorf("the grant of %s was, or is, of %s", g.has, h.Requests())
		}
	}
	return nil
}

func (m *model) convert(g *grant, s step) error {
	h := g.helds[s.pick%len(g.helds)]
	if s.kind == upgradeStep {
		return m.upgrade(g, h, s.mode)
	}
	err := h.Downgrade(m.Context(), s.mode)
	covered := !slices.ContainsFunc(g.has, func(r lock.Request) bool { return !atLeast(r.Mode, s.mode) })
	switch {
	case g.over != nil || g.revoked:
		return m.pastConverting(g, err)
	case !covered && !errors.Is(err, lock.ErrInvalid):
		return fmt.Errorf("held.Downgrade of %s to %s is to be ErrInvalid: %w", g.has, s.mode, err)
	case covered && err != nil:
		return fmt.Errorf("held.Downgrade of %s to %s: %w", g.has, s.mode, err)
	case covered:
		g.has = slices.Clone(g.has) // what was issued stays what it was
		for i := range g.has {
			g.has[i].Mode = s.mode
		}
	}
	if h.Token() != g.token {
		return fmt.Errorf("held.Downgrade changes the token from %d to %d", g.token, h.Token())
	}
	return m.over(g)
}

func (m *model) pastConverting(g *grant, err error) error {
	want := cmp.Or(g.over, lock.ErrRevoked)
	if !errors.Is(err, want) {
		return fmt.Errorf("converting a grant of %s that is over or revoked is to be %v: %w", g.has, want, err)
	}
	return m.over(g)
}

func (m *model) upgrade(g *grant, h *lock.Held, mode lock.Mode) error {
	// Who is in the way is asked of what is raised only: a member of a list that
	// stays as it is needs nothing.
	after := slices.Clone(g.has)
	var raised []lock.Request
	for i := range after {
		if to := joined(after[i].Mode, mode); to != after[i].Mode {
			after[i].Mode = to
			raised = append(raised, after[i])
		}
	}
	err := h.Upgrade(m.Context(), mode)
	if g.over != nil || g.revoked {
		return m.pastConverting(g, err)
	}
	if inTheWay := m.oracle.inTheWay(raised, g.claim); len(inTheWay) > 0 {
		if err := m.refusal(err, lock.ErrConflict, &claim{asked: raised}, inTheWay); err != nil {
			return fmt.Errorf("held.Upgrade: %w", err)
		}
		if h.Token() != g.token {
			return fmt.Errorf("a refused Upgrade changes the token from %d to %d", g.token, h.Token())
		}
		return m.over(g)
	}
	if err != nil {
		return fmt.Errorf("with nobody in the way Upgrade of %s to %s: %w", g.has, mode, err)
	}
	if len(raised) == 0 {
		return m.over(g)
	}
	before := g.token
	g.has = after
	if err := m.issue(g); err != nil {
		return fmt.Errorf("held.Upgrade: %w", err)
	}
	if g.token <= before {
		return fmt.Errorf("held.Upgrade to %s: token %d comes after %d", g.has, g.token, before)
	}
	return m.over(g)
}

func (m *model) holders(s step) error {
	at := s.rs[0].Path
	got, err := m.l.Holders(m.Context(), at, s.scope)
	if err != nil {
		return fmt.Errorf("locker.Holders: %w", err)
	}
	want := m.oracle.holders(func(p lock.Path) bool {
		above := p != at && marks(lock.Request{Path: at, Mode: lock.X})[p.String()] != 0
		below := p != at && marks(lock.Request{Path: p, Mode: lock.X})[at.String()] != 0
		return above && s.scope&lock.Above != 0 || p == at && s.scope&lock.At != 0 || below && s.scope&lock.Below != 0
	})
	if fault := differ(got, want, false); fault != "" {
		return fmt.Errorf("%s %s: %s", s.scope, at, fault)
	}
	return nil
}

func (m *model) snapshot() error {
	s, err := m.l.Snapshot(m.Context())
	if err != nil {
		return fmt.Errorf("locker.Snapshot: %w", err)
	}
	if fault := differ(s.Holders, m.oracle.holders(func(lock.Path) bool { return true }), false); fault != "" {
		return fmt.Errorf("locker.Snapshot: %s", fault)
	}
	held, waiting := m.oracle.counts()
	if s.Held != held || s.Waiting != waiting {
		return fmt.Errorf("locker.Snapshot: %d are held and %d wait, not %d and %d", s.Held, s.Waiting, held, waiting)
	}
	for _, t := range m.tokens {
		if t.token > s.LastToken {
			return fmt.Errorf("locker.Snapshot: the last token is %d, but %d was granted", s.LastToken, t.token)
		}
	}
	return nil
}

// takeAway revokes or breaks by a token, mostly one that somebody holds.
func (m *model) takeAway(s step) error {
	if len(m.tokens) == 0 {
		return nil
	}
	token := m.tokens[len(m.tokens)-1-s.pick%min(len(m.tokens), 12)].token
	reason := fmt.Sprint("reason ", s.pick)
	what, do := "locker.Break", m.l.Break
	if s.kind == revokeStep {
		what, do = "locker.Revoke", m.l.Revoke
	}
	err := do(m.Context(), token, reason)
	i := slices.IndexFunc(m.grants, func(g *grant) bool { return g.over == nil && g.token == token })
	if i < 0 {
		if !errors.Is(err, lock.ErrNotHeld) {
			return fmt.Errorf("%s of a token that nobody holds: %w", what, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	g := m.grants[i]
	if s.kind == breakStep || !g.revoked {
		g.reason = reason
	}
	g.revoked = true
	if s.kind == breakStep {
		g.over = lock.ErrLost
		m.oracle.leave(g.claim)
	}
	for _, h := range g.helds {
		select {
		case <-h.Lost():
		default:
			return fmt.Errorf("after %s, Lost of %s is not closed", what, g.has)
		}
	}
	return m.over(g)
}
