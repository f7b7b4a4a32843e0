package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// player makes the calls of a sequence to one locker.
type player struct {
	*env
	l       lock.Locker
	all     []*acquisition          // those that were granted and those that wait, in the order of the calls
	clients map[string]*acquisition // the last one of each client
	step    step                    // the latest
	last    *call                   // of that step
	issued  []issued
	fence   lock.Fence
}

// acquisition is a try or a lock.
type acquisition struct {
	*call
	client string
	token  lock.Token // 0: it waits
}

// issued is a token and the requests that it was granted for.
type issued struct {
	token lock.Token
	rs    []lock.Request
}

func (e *env) newPlayer(l lock.Locker) *player {
	return &player{env: e, l: l, clients: map[string]*acquisition{}}
}

// held reports whether the grant of an acquisition holds. A revoked one does.
func (a *acquisition) held() bool {
	return a.returned() && a.err == nil && !slices.Contains([]string{"not-held", "lost"}, kindOf(a.grant.Check()))
}

// start starts the call of a step. A lock may wait, every other call returns.
func (p *player) start(s step) {
	ctx := p.Context()
	if s.ended {
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errCancelled)
		ctx = ended
	}
	a := p.clients[s.client]
	p.step = s
	p.last = p.begin(ctx, s.text, func(ctx context.Context) (*lock.Grant, error) { return p.perform(ctx, s, a) })
	if acquires(s.op) {
		p.all = append(p.all, &acquisition{call: p.last, client: s.client})
	}
	if s.op != "lock" {
		p.wait(p.last)
	}
}

// perform makes the call of a step. The acquisition is the last one of the client.
func (p *player) perform(ctx context.Context, s step, a *acquisition) (*lock.Grant, error) {
	switch {
	case acquires(s.op), s.op == "holders", s.op == "snapshot":
		return s.call(ctx, p.l, nil)
	case s.op == "cancel" && a != nil && !a.returned():
		a.cancel(errCancelled)
		<-a.done
		return nil, nil
	case s.op == "cancel", a == nil, !a.returned(), a.grant == nil:
		return nil, lock.ErrNotHeld // there is nothing to call
	case s.op == "admit":
		return nil, p.fence.Admit(a.grant.Token())
	}
	released := errors.Is(a.grant.Check(), lock.ErrNotHeld)
	_, err := s.call(ctx, p.l, a.grant)
	if s.op == "unlock" {
		switch {
		case s.ended && errors.Is(err, context.Canceled):
			err = nil // a driver may report that it did not wait for the answer of its engine
		case released && err == nil:
			err = lock.ErrNotHeld // the suite has its own answer for a repeated Unlock
		case released:
			err = fmt.Errorf("a repeated Unlock: %v", err)
		}
	}
	return nil, err
}

// call makes the call of a step to a locker. The grant is the last one of the client.
func (s *step) call(ctx context.Context, l lock.Locker, g *lock.Grant) (_ *lock.Grant, err error) {
	switch s.op {
	case "try", "lock":
		return acquire(ctx, l, s.op, s.requests, &s.options)
	case "holders":
		_, err = l.Holders(ctx, s.path, lock.At)
	case "snapshot":
		_, err = l.Snapshot(ctx)
	case "revoke":
		err = l.Revoke(ctx, g.Token(), "reason of revoke")
	case "break":
		err = l.Break(ctx, g.Token(), "reason of break")
	case "check":
		err = g.Check()
	case "unlock":
		err = g.Unlock(ctx)
	default:
		if s.op == "downgrade" || s.op == "convert" && allCover(g.Requests(), s.mode) {
			return nil, g.Downgrade(ctx, s.mode)
		}
		err = g.Upgrade(ctx, s.mode)
	}
	return nil, err
}

// acquire makes a try or a lock of one request or several.
func acquire(ctx context.Context, l lock.Locker, op string, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	switch try := op == "try"; {
	case try && len(rs) == 1:
		return l.TryLock(ctx, rs[0], o)
	case try:
		return l.TryLockAll(ctx, rs, o)
	case len(rs) == 1:
		return l.Lock(ctx, rs[0], o)
	}
	return l.LockAll(ctx, rs, o)
}

// view describes what the call of an acquisition has returned, and what its grant shows. A token
// is shown as the number of its acquisition, because every locker has tokens of its own.
func (p *player) view(a *acquisition) string {
	text := a.client + ": " + p.outcome(a.call)
	if a.returned() && a.grant != nil {
		text += fmt.Sprintf("\ngrant %d, new token: %t, %s, check: %s, lost: %t", p.number(a.grant.Token()),
			a.grant.Token() != a.token, a.grant.Requests(), p.show(a.grant.Check()), closed(a.grant.Lost()))
	}
	return text
}

// scopes describes what Holders returns for the path of the step, if it has one.
func (p *player) scopes() string {
	if p.step.op != "holders" || p.last.err != nil {
		return ""
	}
	var b strings.Builder
	for scope := lock.Above; scope <= lock.Above|lock.At|lock.Below; scope++ {
		holders, err := p.l.Holders(p.Context(), p.step.path, scope)
		fmt.Fprintf(&b, "holders %d: %v\n%s\n", scope, err, strings.Join(p.holders(holders), "\n"))
	}
	return b.String()
}

// snapshot describes the snapshot of the locker.
func (p *player) snapshot() string {
	var b strings.Builder
	s, err := p.l.Snapshot(p.Context())
	fmt.Fprintf(&b, "snapshot: %v, %d held, %d waiting\n", err, s.Held, s.Waiting)
	if s.Held+s.Waiting == 0 {
		fmt.Fprintf(&b, "%d nodes\n", s.Nodes)
	}
	fmt.Fprintln(&b, strings.Join(p.holders(s.Holders), "\n"))
	for _, t := range p.issued {
		if s.LastToken < t.token {
			fmt.Fprintf(&b, "the last token is %d, but %d was granted\n", s.LastToken, t.token)
		}
	}
	return b.String()
}

// outcome describes what a call has returned.
func (p *player) outcome(c *call) string {
	switch {
	case !c.returned():
		return "waiting"
	case c.panics != nil:
		return fmt.Sprintf("panic: %v", c.panics)
	}
	return p.show(c.err)
}

// obstacle returns the error of a try of what the last call waits for, and nil if that call has
// returned. The try is refused for the same holders and for the wait. It has no effect.
func (p *player) obstacle() error {
	if p.last.returned() {
		return nil
	}
	_, err := acquire(p.Context(), p.l, "try", p.step.requests, nil)
	return err
}

// answer returns the kind of the answer to the last call, see kindOf, and the clients that a
// refusal lists or that a wait waits for.
func (p *player) answer() (kind string, names []string) {
	kind, err := "waiting", p.obstacle()
	waiting := !p.last.returned()
	if !waiting {
		kind, err = kindOf(p.last.err), p.last.err
	}
	if refused, ok := errors.AsType[*lock.ConflictError](err); ok {
		for _, h := range refused.Holders {
			if !waiting || !h.Waiting || h.Owner != p.step.options.Owner {
				names = append(names, cmp.Or(h.Owner, "-"))
			}
		}
	}
	return kind, names
}

// show describes an error.
func (p *player) show(err error) string {
	text := kindOf(err)
	if text == "cancelled" && !errors.Is(err, context.Canceled) {
		text += ", which is not context.Canceled"
	}
	if lost, ok := errors.AsType[*lock.LostError](err); ok {
		text += fmt.Sprintf(" of grant %d, reason %q", p.number(lost.Token), lost.Reason)
	}
	if refused, ok := errors.AsType[*lock.ConflictError](err); ok && len(refused.Holders) > 0 {
		text += fmt.Sprintf(" of %s, more: %t\n%s", refused.Requests, refused.More, strings.Join(p.holders(refused.Holders), "\n"))
	}
	return text
}

// holders describes holders, each in a line.
func (p *player) holders(list []lock.Holder) (texts []string) {
	for _, h := range list {
		texts = append(texts, fmt.Sprintf("%s, id %q, owner %q, reason %q, grant %d, waiting: %t, with Since: %t",
			lock.Request{Path: h.Path, Mode: h.Mode}, h.ID, h.Owner, h.Reason, p.number(h.Token), h.Waiting, !h.Since.IsZero()))
	}
	return texts
}

// number returns the number of the acquisition that has a token. It is 0 for token 0, and -1
// if no acquisition has the token.
func (p *player) number(token lock.Token) int {
	if token == 0 {
		return 0
	}
	for i, a := range p.all {
		if a.returned() && a.grant != nil && a.grant.Token() == token {
			return i + 1
		}
	}
	return -1
}

// forget forgets the acquisitions that were refused or cancelled. It ends the contexts of the
// others that have returned: a grant does not depend on them.
func (p *player) forget() {
	p.all = slices.DeleteFunc(p.all, func(a *acquisition) bool { return a.returned() && a.err != nil })
	for _, a := range p.all {
		if a.call == p.last {
			p.clients[a.client] = a
		}
		if a.returned() {
			a.cancel(errCancelled)
		}
	}
}

// renewed returns the indices of the acquisitions whose grant has a new token, in the order of
// the tokens.
func (p *player) renewed() (list []int) {
	for i, a := range p.all {
		if a.returned() && a.grant.Token() != a.token {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(i, k int) int { return cmp.Compare(p.all[i].grant.Token(), p.all[k].grant.Token()) })
	return list
}

// issue takes a new token. It must be greater than those of earlier grants that conflict or
// that the same step made, which follow the former ones, and unlike all others.
func (p *player) issue(now issued, former int) {
	require.GreaterOrEqual(p, now.token, max(p.config.FirstToken, 1), "a token and the first token")
	for i, t := range p.issued {
		require.NotEqual(p, t.token, now.token, "two tokens")
		if i >= former || conflict(t.rs, now.rs) {
			require.Greater(p, now.token, t.token, "the token of %s, which is granted after %s", now.rs, t.rs)
		}
	}
	p.issued = append(p.issued, now)
}

// replaced requires that a token grows in an upgrade, and that no grant has the old one any
// more. No grant has token 0.
func (p *player) replaced(before, now lock.Token) {
	require.Greater(p, now, before, "the token of an upgrade")
	for _, token := range []lock.Token{before, 0} {
		require.ErrorIs(p, p.l.Break(p.Context(), token, "not held"), lock.ErrNotHeld, "Break of token %d", token)
		require.ErrorIs(p, p.l.Revoke(p.Context(), token, "not held"), lock.ErrNotHeld, "Revoke of token %d", token)
	}
}
