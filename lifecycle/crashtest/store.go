package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// store is the store as one process sees it. A call of a process that stalls
// waits, a call of a process that is gone never returns, and every commit is
// numbered.
type store struct {
	p     *Process
	inner lifecycle.Store
}

var (
	_ lifecycle.Historian = (*store)(nil)
	_ lifecycle.Outbox    = (*store)(nil)
)

// call performs one call of the store. A process that is gone meanwhile does not
// receive the answer.
func call[R any](s *store, do func() (R, error)) (R, error) {
	var none R
	if err := s.p.enter(); err != nil {
		return none, err
	}
	result, err := func() (R, error) {
		s.p.w.calls(1)
		defer s.p.w.calls(-1) // also after a panic, which the caller may recover
		return do()
	}()
	if gone := s.p.enter(); gone != nil {
		return none, gone
	}
	return result, err
}

// calls counts the calls that the store has not answered.
func (w *world) calls(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calling += n
	w.activity++
}

func (s *store) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	return call(s, func() (lifecycle.StoredRecord, error) { return s.inner.Get(ctx, key) })
}

func (s *store) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	return call(s, func() ([]lifecycle.StoredRecord, error) { return s.inner.List(ctx, q) })
}

func (s *store) Capabilities() lifecycle.Capabilities { return s.inner.Capabilities() }

func (s *store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	return call(s, func() ([]lifecycle.HistoryRow, error) {
		h, ok := s.inner.(lifecycle.Historian)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		return h.History(ctx, key, after, limit)
	})
}

func (s *store) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	return call(s, func() ([]lifecycle.OutboxMessage, error) {
		o, ok := s.inner.(lifecycle.Outbox)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		return o.Messages(ctx, limit)
	})
}

func (s *store) Discard(ctx context.Context, numbers ...uint64) error {
	_, err := call(s, func() (struct{}, error) {
		o, ok := s.inner.(lifecycle.Outbox)
		if !ok {
			return struct{}{}, errors.ErrUnsupported
		}
		s.p.w.mu.Lock()
		s.p.w.discarded = true
		s.p.w.mu.Unlock()
		return struct{}{}, o.Discard(ctx, numbers...)
	})
	return err
}

// Commit is where faults happen.
func (s *store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	w, p := s.p.w, s.p
	if err := p.enter(); err != nil {
		return err
	}
	kind := w.strikes(p, c)
	switch kind {
	case CrashBefore, DeathBefore:
		p.stop(gone)
	case Paused:
		p.stop(paused)
		// The write is on its way: the end of a context does not stop it any more.
		ctx = context.WithoutCancel(ctx)
	case Refused:
		return fmt.Errorf("%w: %s", ErrInjected, textOf(p.name, c))
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
	err := s.commit(ctx, &sent)
	lost := w.wrote(p, &sent, kind, err)
	if err == nil && (kind == CrashAfter || kind == DeathAfter) {
		p.stop(gone)
	}
	if gone := p.enter(); gone != nil {
		return gone
	}
	if lost {
		return fmt.Errorf("%w: the answer is lost", lifecycle.ErrUnknownOutcome)
	}
	if err == nil {
		c.Changes = sent.Changes
		w.learned(&sent)
	}
	return err
}

func (s *store) commit(ctx context.Context, c *lifecycle.Commit) error {
	s.p.w.calls(1)
	defer s.p.w.calls(-1)
	return s.inner.Commit(ctx, c)
}

// strikes returns the fault that happens at this commit, or 0, and counts it.
func (w *world) strikes(p *Process, c *lifecycle.Commit) Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := textOf(p.name, c)
	if w.hits == len(w.faults) || w.faults[w.hits].write != (write{text, w.times[text]}) {
		return 0
	}
	kind := w.faults[w.hits].kind
	w.hits++
	p.forGood = kind.forGood()
	if w.since = len(w.writes); kind.after() {
		w.since++ // this one is still to be written
	}
	return kind
}

// wrote notes a commit that the store has answered. It reports whether the answer
// is lost.
func (w *world) wrote(p *Process, c *lifecycle.Commit, kind Kind, err error) (lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !w.tokens[c.Token] {
		w.tokens[c.Token] = true
		text := textOf(p.name, c)
		if !w.done {
			w.writes = append(w.writes, write{text, w.times[text]})
		}
		w.times[text]++
		for i := range c.Changes {
			w.keys[c.Changes[i].To.Key] = true
		}
		for i := range c.Messages {
			w.sent[lineOf(&c.Messages[i])]++
		}
	}
	if err != nil && kind.after() {
		w.hits-- // there was no write: the point is still to come
		return false
	}
	if kind == NoAnswer {
		w.mute[c.Token] = true
	}
	return kind == LostAnswer || w.mute[c.Token]
}

// learned notes a commit that was acknowledged to a process.
func (w *world) learned(c *lifecycle.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range c.Changes {
		if !c.Changes[i].MetadataOnly {
			w.learnt = append(w.learnt, c.Changes[i].Row(c.Token))
		}
	}
}
