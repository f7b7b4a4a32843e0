package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// simulatedStore is the store as one process sees it. A call of a process that stalls
// waits, a call of a process that is gone never returns, and every commit is numbered.
type simulatedStore struct {
	fullStore // the outbox is read after the end only
	p         *Process
}

// fullStore is a store with history and messages.
type fullStore interface {
	historian
	lifecycle.Outbox
}

// call performs one call of the store. A process that is gone meanwhile does not receive
// the answer.
func call[R any](s *simulatedStore, do func() (R, error)) (R, error) {
	var none R
	if err := s.p.enter(); err != nil {
		return none, err
	}
	result, err := do()
	if gone := s.p.enter(); gone != nil {
		return none, gone
	}
	return result, err
}

func (s *simulatedStore) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	return call(s, func() (lifecycle.StoredRecord, error) { return s.fullStore.Get(ctx, key) })
}

func (s *simulatedStore) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	return call(s, func() ([]lifecycle.StoredRecord, error) { return s.fullStore.List(ctx, q) })
}

func (s *simulatedStore) History(
	ctx context.Context, key lifecycle.Key, after uint64, limit int,
) ([]lifecycle.HistoryRow, error) {
	return call(s, func() ([]lifecycle.HistoryRow, error) { return s.fullStore.History(ctx, key, after, limit) })
}

func (s *simulatedStore) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	return call(s, func() (lifecycle.HistoryRow, error) { return s.fullStore.Requested(ctx, machine, request) })
}

// Commit is where faults happen.
func (s *simulatedStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	sim, p := s.p.sim, s.p
	if err := p.enter(); err != nil {
		return err
	}
	kind := sim.strikes(p, c)
	switch kind {
	case CrashBefore, DeathBefore:
		p.become(gone)
	case Paused:
		p.become(paused)
		ctx = context.WithoutCancel(ctx) // the write is on its way
	case Refused:
		return fmt.Errorf("%w: %s", errInjected, textOf(p.name, c))
	case LostRequest:
		return fmt.Errorf("%w: the request is lost", lifecycle.ErrUnknownOutcome)
	case CrashAfter, DeathAfter, LostAnswer, NoAnswer:
	}
	if err := p.enter(); err != nil {
		return err
	}
	// The process sees the fields that the store sets only with the answer.
	sent := *c
	sent.Changes = slices.Clone(c.Changes)
	err := s.fullStore.Commit(ctx, &sent)
	lost := sim.noteWrite(p, &sent, kind, err)
	if err == nil && (kind == CrashAfter || kind == DeathAfter) {
		p.become(gone)
	}
	if gone := p.enter(); gone != nil {
		return gone
	}
	if lost {
		return fmt.Errorf("%w: the answer is lost", lifecycle.ErrUnknownOutcome)
	}
	if err == nil {
		c.Changes = sent.Changes
		sim.mu.Lock()
		defer sim.mu.Unlock()
		for i := range c.Changes {
			if !c.Changes[i].MetadataOnly {
				sim.acknowledged = append(sim.acknowledged, c.Changes[i].Row(c.Token))
			}
		}
	}
	return err
}

// strikes returns the fault that happens at this commit, or "".
func (s *simulation) strikes(p *Process, c *lifecycle.Commit) Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hit || s.fault == nil || s.fault.write != s.writeOf(textOf(p.name, c)) {
		return ""
	}
	s.hit, p.hit = true, true
	return s.fault.kind
}

// noteWrite notes a commit that the store has answered. It reports whether the answer is
// lost.
func (s *simulation) noteWrite(p *Process, c *lifecycle.Commit, kind Kind, err error) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.tokens[c.Token] {
		s.tokens[c.Token] = true
		text := textOf(p.name, c)
		if !s.done {
			s.writes = append(s.writes, s.writeOf(text))
		}
		s.times[text]++
		for i := range c.Changes {
			s.keys[c.Changes[i].To.Key] = true
		}
		for _, m := range c.Messages {
			s.sent[lineOf(m)]++
		}
	}
	if err != nil && kind != "" && kind != Paused {
		s.hit, p.hit = false, false // there was no write: the point is still to come
		return false
	}
	if kind == NoAnswer {
		s.unanswered[c.Token] = true
	}
	return kind == LostAnswer || s.unanswered[c.Token]
}

// writeOf identifies a durable write of a scenario: its process and content, and how many equal
// ones came before. It is not a number: writes of concurrent work may come in between without
// changing it. REQUIRES: s.mu.
func (s *simulation) writeOf(text string) string {
	if before := s.times[text]; before > 0 {
		return fmt.Sprintf("%s, time %d", text, before+1)
	}
	return text
}

// textOf describes what a commit writes.
func textOf(process string, c *lifecycle.Commit) string {
	if len(c.Changes) == 0 {
		return process + ": nothing"
	}
	ch := &c.Changes[0]
	done := cmp.Or(ch.To.Event, "added") + " by " + string(ch.To.Actor)
	if ch.MetadataOnly {
		done = fmt.Sprint("metadata with a timeout of ", ch.Timeout)
	}
	text := fmt.Sprintf("%s: %s %q %s, to %s from %s", process, ch.To.Machine, ch.To.ID, done, ch.To.State, cmp.Or(ch.From, "none"))
	if more := len(c.Changes) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
