package locktest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// matches compares an error with the expected answer.
func (e *env) matches(a answer, err error) error {
	if kind := kindOf(err); kind != a.kind {
		return fmt.Errorf("the answer is %q, not %q: %w", kind, a.kind, err)
	}
	if !slices.Contains([]string{"conflict", "in-use", "queue-full", "cancelled"}, a.kind) {
		return nil
	}
	refused, ok := errors.AsType[*lock.ConflictError](err)
	if !ok {
		return fmt.Errorf("the error is no *ConflictError: %w", err)
	}
	if !slices.Equal(refused.Requests, a.requests) {
		return fmt.Errorf("the refusal is of %s, not of %s", refused.Requests, a.requests)
	}
	if limit := e.config.MaxHolders; refused.More && limit > 0 && len(refused.Holders) != limit {
		return fmt.Errorf("the refusal lists %d of %d holders, not %d", len(refused.Holders), len(a.holders), limit)
	}
	return differ(refused.Holders, a.holders, refused.More)
}

// differ compares holders with the expected ones. With more, some may be missing.
func differ(got, want []lock.Holder, more bool) error {
	i := 0
	for _, h := range got {
		if h.Since.IsZero() {
			return fmt.Errorf("holder %v has no Since", h)
		}
		h.Since = time.Time{}
		for more && i < len(want) && want[i] != h {
			i++
		}
		if i == len(want) || want[i] != h {
			return fmt.Errorf("the holders are %+v, not %+v", got, want)
		}
		i++
	}
	if !more && i < len(want) || more && (len(got) == 0 || len(got) >= len(want)) {
		return fmt.Errorf("the holders are %+v, more: %t, not %+v", got, more, want)
	}
	return nil
}

// compare compares the locker with the oracle after a step. It returns the owners
// of the waits that the step has granted, in order.
func (sys *system) compare() (granted []string, err error) {
	last := lock.Token(0)
	for _, c := range sys.oracle.wake() {
		for _, call := range c.calls {
			if err := sys.wait(call); err != nil {
				return nil, err
			}
			if call.err != nil {
				return nil, fmt.Errorf("%s, without a conflict: %w", call.what, call.err)
			}
			if err := sys.addGrant(c, call.grant); err != nil {
				return nil, err
			}
		}
		if c.token <= last {
			return nil, fmt.Errorf("%s, token %d, is granted after a later request, token %d", c.has, c.token, last)
		}
		granted, last, c.calls = append(granted, c.options.Owner), c.token, nil
	}
	sys.settle()
	for _, c := range sys.claims {
		if err := c.inspect(); err != nil {
			return nil, err
		}
	}
	return granted, sys.eventually(sys.snapshot)
}

// inspect compares everything that the grants of a claim report.
func (c *claim) inspect() error {
	for _, call := range c.calls {
		if call.returned() {
			return fmt.Errorf("%s must wait and has returned: %w", call.what, call.err)
		}
	}
	want := view{kindOf(c.fault), c.token, c.has, c.revoked, c.fault != nil, ""}
	if c.revoked && c.fault != lock.ErrNotHeld {
		want.loss = fmt.Sprint(c.token, c.reason)
	}
	for i, g := range c.grants {
		err := g.Check()
		got := view{kindOf(err), g.Token(), g.Requests(), closed(g.Lost()), c.works[i].Err() != nil, ""}
		if lost, ok := errors.AsType[*lock.LostError](err); ok {
			got.loss = fmt.Sprint(lost.Token, lost.Reason)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("the grant of %s is %+v, not %+v", c.has, got, want)
		}
	}
	return nil
}

// view is what a grant reports.
type view struct {
	check    string
	token    lock.Token
	requests []lock.Request
	lost     bool   // Lost is closed
	ended    bool   // its context has ended
	loss     string // token and reason of the loss that Check returns
}

// snapshot compares the locker's snapshot.
func (sys *system) snapshot() error {
	s, err := sys.l.Snapshot(sys.Context())
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := differ(s.Holders, sys.oracle.holders(lock.Root(), lock.At|lock.Below), false); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	held, waiting := sys.oracle.counts()
	if s.Held != held || s.Waiting != waiting {
		return fmt.Errorf("snapshot: %d are held and %d wait, not %d and %d", s.Held, s.Waiting, held, waiting)
	}
	if held+waiting == 0 && s.Nodes != 0 {
		return fmt.Errorf("snapshot: the locker is idle and keeps %d nodes", s.Nodes)
	}
	for _, t := range sys.tokens {
		if s.LastToken < t.token {
			return fmt.Errorf("snapshot: the last token is %d, but %d was granted", s.LastToken, t.token)
		}
	}
	return nil
}

// holders compares Holders in every scope.
func (sys *system) holders(path string) error {
	p, err := lock.Parse(path)
	if err != nil {
		return err
	}
	for scope := lock.Above; scope <= lock.Above|lock.At|lock.Below; scope++ {
		got, err := sys.l.Holders(sys.Context(), p, scope)
		if err == nil {
			err = differ(got, sys.oracle.holders(p, scope), false)
		}
		if err != nil {
			return fmt.Errorf("holders %d %s: %w", scope, p, err)
		}
	}
	return nil
}
