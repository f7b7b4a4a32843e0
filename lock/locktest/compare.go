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

// same compares an error of the locker with that of the Tree.
func (p *player) same(want, got error) (answer, error) {
	a := answer{kind: kindOf(want)}
	if kind := kindOf(got); kind != a.kind {
		return a, fmt.Errorf("the answer is %q, not %q: %w", kind, a.kind, got)
	}
	if a.kind == "cancelled" && !errors.Is(got, context.Canceled) {
		return a, fmt.Errorf("the error does not match context.Canceled: %w", got)
	}
	if lost, ok := errors.AsType[*lock.LostError](want); ok {
		also, ok := errors.AsType[*lock.LostError](got)
		if !ok || also.Token != p.tokens[lost.Token].token || also.Reason != lost.Reason {
			return a, fmt.Errorf("the loss is of token %d with reason %q: %w", p.tokens[lost.Token].token, lost.Reason, got)
		}
	}
	expected, ok := errors.AsType[*lock.ConflictError](want)
	if !ok {
		return a, nil
	}
	for _, h := range expected.Holders {
		a.names = append(a.names, cmp.Or(h.Owner, "-"))
	}
	refused, ok := errors.AsType[*lock.ConflictError](got)
	if !ok {
		return a, fmt.Errorf("the error is no *ConflictError: %w", got)
	}
	if !slices.Equal(refused.Requests, expected.Requests) {
		return a, fmt.Errorf("the refusal is of %s, not of %s", refused.Requests, expected.Requests)
	}
	if limit := p.config.MaxHolders; refused.More && limit > 0 && len(refused.Holders) != limit {
		return a, fmt.Errorf("the refusal lists %d of %d holders, not %d", len(refused.Holders), len(expected.Holders), limit)
	}
	return a, p.differ(refused.Holders, expected.Holders, refused.More)
}

// differ compares holders with those of the Tree. With more, some are missing.
func (p *player) differ(got, want []lock.Holder, more bool) error {
	rest := slices.Clone(want)
	for i := range rest {
		rest[i].Token, rest[i].Since = p.tokens[rest[i].Token].token, time.Time{}
	}
	wrong := more != (len(got) < len(want)) || more && len(got) == 0
	for _, h := range got {
		if h.Since.IsZero() {
			return fmt.Errorf("holder %v has no Since", h)
		}
		h.Since = time.Time{}
		i := slices.Index(rest, h)
		if wrong = wrong || i < 0; wrong {
			break
		}
		rest = rest[i+1:]
	}
	if wrong {
		return fmt.Errorf("the holders are %+v, more: %t, not %+v", got, more, want)
	}
	return nil
}

// compare compares the locker with the Tree after a step. It returns the clients whose waits
// the step has granted, in order.
func (p *player) compare() (granted []string, err error) {
	if err := p.settleTree(); err != nil {
		return nil, err
	}
	p.all = slices.DeleteFunc(p.all, func(a *acquisition) bool { return a.want.returned() && a.want.err != nil })
	slices.SortStableFunc(p.all, func(a, b *acquisition) int { return cmp.Compare(a.token(), b.token()) })
	for _, a := range p.all {
		if !a.want.returned() {
			if a.got.returned() {
				return nil, fmt.Errorf("%s must wait and has returned: %w", a.got.what, a.got.err)
			}
			continue
		}
		if !a.granted {
			if err := p.grant(a); err != nil {
				return nil, err
			}
			granted = append(granted, a.client)
		}
		if err := p.inspect(a); err != nil {
			return nil, fmt.Errorf("the grant of %s: %w", a.got.what, err)
		}
	}
	return granted, p.eventually(p.snapshot)
}

// settleTree waits until the calls of the Tree have returned that no request blocks any
// more. Only in a bubble several calls may wait for one id.
func (p *player) settleTree() error {
	return p.eventually(func() error {
		waiting := 0
		for _, a := range p.all {
			if !a.want.returned() {
				waiting++
			}
		}
		if counts := p.tree.Counts(); !p.bubble && counts.Waiting != waiting {
			return fmt.Errorf("the Tree has %d waits, and %d calls have not returned", counts.Waiting, waiting)
		}
		return nil
	})
}

// inspect compares everything that a grant reports. Its contexts end as Lost does, or with
// the release.
func (p *player) inspect(a *acquisition) error {
	want, got := a.want.grant, a.got.grant
	if p.tokens[want.Token()].token == 0 {
		if err := p.issue(want.Token(), issued{got.Token(), want.Requests(), p.step}); err != nil {
			return err
		}
	}
	_, err := p.same(want.Check(), got.Check())
	switch token := p.tokens[want.Token()].token; {
	case err != nil:
		return fmt.Errorf("check: %w", err)
	case got.Token() != token:
		return fmt.Errorf("the token is %d, not %d", got.Token(), token)
	case !slices.Equal(got.Requests(), want.Requests()):
		return fmt.Errorf("the requests are %s, not %s", got.Requests(), want.Requests())
	case closed(got.Lost()) != closed(want.Lost()):
		return fmt.Errorf("lost is closed: %t", closed(got.Lost()))
	}
	return nil
}

// issue takes a new token of the locker. It must be greater than those of earlier grants that
// conflict or that the same step made, and unlike all others.
func (p *player) issue(want lock.Token, now issued) error {
	for _, t := range p.tokens {
		if t.token == now.token || t.token > now.token && (t.step == now.step || conflict(t.rs, now.rs)) {
			return fmt.Errorf("%s is granted with token %d after %s with token %d", now.rs, now.token, t.rs, t.token)
		}
	}
	if now.token < max(p.config.FirstToken, 1) {
		return fmt.Errorf("token %d is below the first token, %d", now.token, max(p.config.FirstToken, 1))
	}
	p.tokens[want] = now
	return nil
}

// snapshot compares the snapshots.
func (p *player) snapshot() error {
	want, err := p.tree.Snapshot(p.Context())
	if err != nil {
		return fmt.Errorf("snapshot of the Tree: %w", err)
	}
	got, err := p.l.Snapshot(p.Context())
	if err == nil {
		err = p.differ(got.Holders, want.Holders, false)
	}
	switch {
	case err != nil:
		return fmt.Errorf("snapshot: %w", err)
	case got.Held != want.Held || got.Waiting != want.Waiting:
		return fmt.Errorf("snapshot: %d are held and %d wait, not %d and %d", got.Held, got.Waiting, want.Held, want.Waiting)
	case want.Held+want.Waiting == 0 && got.Nodes != 0:
		return fmt.Errorf("snapshot: the locker is idle and keeps %d nodes", got.Nodes)
	}
	for _, t := range p.tokens {
		if got.LastToken < t.token {
			return fmt.Errorf("snapshot: the last token is %d, but %d was granted", got.LastToken, t.token)
		}
	}
	return nil
}

// holders compares Holders in every scope.
func (p *player) holders(at lock.Path) error {
	for scope := lock.Above; scope <= lock.Above|lock.At|lock.Below; scope++ {
		want, _ := p.tree.Holders(p.Context(), at, scope) // the arguments are valid
		got, err := p.l.Holders(p.Context(), at, scope)
		if err == nil {
			err = p.differ(got, want, false)
		}
		if err != nil {
			return fmt.Errorf("holders %d %s: %w", scope, at, err)
		}
	}
	return nil
}
