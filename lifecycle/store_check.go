package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// Check refuses a commit that is malformed or needs more than a store has, for use
// by stores before anything else. A commit that passes has at least one change, a
// state in each of them, and no two of one key.
//
// Errors: [ErrInvalid] for what no store can do, [errors.ErrUnsupported] for more
// changes and preconditions, or messages, than the capabilities declare.
func (c *Commit) Check(has Capabilities) error {
	switch n := len(c.Changes) + len(c.Require); {
	case len(c.Changes) == 0:
		return fmt.Errorf("%w: commit without changes", ErrInvalid)
	case n > has.Changes:
		return fmt.Errorf("%w: %d changes and preconditions in one commit, at most %d", errors.ErrUnsupported, n, has.Changes)
	case len(c.Messages) > 0 && !has.Messages:
		return fmt.Errorf("%w: messages in a commit", errors.ErrUnsupported)
	case c.Token == (Token{}):
		return fmt.Errorf("%w: commit without a token", ErrInvalid)
	case !has.History && slices.ContainsFunc(c.Changes, func(ch StoredChange) bool { return ch.Request != "" }):
		return fmt.Errorf("%w: a request id: the store keeps no history", errors.ErrUnsupported)
	case c.Owner.Name == "" && c.Owner.Epoch != 0:
		return fmt.Errorf("%w: commit of an owner without a name", ErrInvalid)
	case len(c.Changes) == 1:
		return c.Changes[0].check()
	}
	seen, requests := make(map[Key]bool, len(c.Changes)), map[Key]bool{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if err := ch.check(); err != nil {
			return err
		}
		if seen[ch.To.Key] {
			return fmt.Errorf("%w: two changes of %s in one commit", ErrInvalid, ch.To.Key.text())
		}
		seen[ch.To.Key] = true
		if request := (Key{ch.To.Machine, ch.Request}); ch.Request != "" {
			if requests[request] {
				return fmt.Errorf("%w: two changes of request %q in one commit", ErrInvalid, shown(ch.Request))
			}
			requests[request] = true
		}
	}
	return nil
}

func (ch *StoredChange) check() error {
	switch to := &ch.To; {
	case to.State == "":
		return fmt.Errorf("%w: change of %s without a state", ErrInvalid, to.Key.text())
	case to.Owner == "" && to.Epoch != 0: // stores find unowned records by epoch 0
		return fmt.Errorf("%w: change of %s with epoch %d and without an owner", ErrInvalid, to.Key.text(), to.Epoch)
	case ch.MetadataOnly && (ch.Remove || ch.From != to.State):
		return fmt.Errorf("%w: change of metadata only of %s from %s to %s", ErrInvalid, to.Key.text(), stateOr(ch.From), stateOr(to.State))
	}
	return nil
}

// Check refuses a malformed query, for use by stores before anything else. The error
// matches [ErrInvalid]: for a limit below 1, and for an After that is not empty and cannot
// be an id, because it is not UTF-8, has a NUL, or is longer than [MaxID].
func (q *Query) Check() error {
	switch {
	case q.Limit <= 0:
		return fmt.Errorf("%w: query with limit %d", ErrInvalid, q.Limit)
	case q.After == "":
		return nil
	}
	return checkID(q.After)
}

// check refuses a precondition that holds for no object, and a grant that does not hold.
func (p *Precondition) check() error {
	if p.Grant != nil {
		if p.Key != (Key{}) || len(p.States) > 0 {
			return fmt.Errorf("%w: precondition on a grant and on %s", ErrInvalid, p.Key.text())
		}
		return p.held()
	}
	if err := checkID(p.ID); err != nil {
		return err
	}
	if len(p.States) == 0 {
		return fmt.Errorf("%w: precondition on %s without states", ErrInvalid, p.Key.text())
	}
	return nil
}

// held refuses a grant that was released, or lost as far as this process knows.
func (p *Precondition) held() error {
	if err := p.Grant.Check(); err != nil && !errors.Is(err, lock.ErrRevoked) {
		return fmt.Errorf("%w: %w", ErrPrecondition, err)
	}
	return nil
}

func (p *Precondition) equal(q Precondition) bool {
	return p.Key == q.Key && p.Grant == q.Grant && slices.Equal(p.States, q.States)
}
