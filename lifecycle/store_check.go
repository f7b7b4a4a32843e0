package lifecycle

import (
	"errors"
	"fmt"
)

// Check refuses a commit that is malformed or asks for more than a store has,
// for use by stores before anything else: what it lets pass has at least one
// change, a state in each of them, and no two of one key.
//
// Errors: [ErrInvalid] for what no store can do, [errors.ErrUnsupported] for
// more changes and preconditions, or messages, than the capabilities declare.
func (c *Commit) Check(has Capabilities) error {
	switch n := len(c.Changes) + len(c.Require); {
	case len(c.Changes) == 0:
		return fmt.Errorf("%w: a commit without changes", ErrInvalid)
	case n > has.Changes:
		return fmt.Errorf("%w: %d changes and preconditions in one commit, at most %d", errors.ErrUnsupported, n, has.Changes)
	case len(c.Messages) > 0 && !has.Messages:
		return fmt.Errorf("%w: messages in a commit", errors.ErrUnsupported)
	case c.Token == Token{}:
		return fmt.Errorf("%w: a commit without a token", ErrInvalid)
	case len(c.Changes) == 1:
		return c.Changes[0].check() // nearly every commit
	}
	seen := make(map[Key]bool, len(c.Changes))
	for i := range c.Changes {
		ch := &c.Changes[i]
		if err := ch.check(); err != nil {
			return err
		}
		if seen[ch.To.Key] {
			return fmt.Errorf("%w: two changes of %s in one commit", ErrInvalid, ch.To.Key.text())
		}
		seen[ch.To.Key] = true
	}
	return nil
}

func (ch *StoredChange) check() error {
	switch to := &ch.To; {
	case to.State == "":
		return fmt.Errorf("%w: change of %s without a state", ErrInvalid, to.Key.text())
	case ch.Quiet && (ch.Remove || ch.From != to.State):
		return fmt.Errorf("%w: a quiet change of %s from %s to %s", ErrInvalid, to.Key.text(), stateOr(ch.From), stateOr(to.State))
	}
	return nil
}

// check refuses what a caller cannot mean.
func (p *Precondition) check() error {
	if err := checkID(p.ID); err != nil {
		return err
	}
	if len(p.States) == 0 {
		return fmt.Errorf("%w: a precondition on %s without states", ErrInvalid, p.Key.text())
	}
	return nil
}
