package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/interlock-go/interlock/internal/shrink"
	"github.com/interlock-go/interlock/lock"
)

func modelDemands() []demand {
	return []demand{{
		name: "Model/random_sequences_agree", run: func(t *trial) { randomSequences(t) },
		says: "Random sequences of calls are answered like a naive model answers them, names, tokens and grants of waits included; the shortest sequence found that is not is told.",
	}}
}

// sequenceLength is how many calls a random sequence has, before all is released.
const sequenceLength = 100

// randomSequences returns how many calls it has compared, those not counted that
// are made to shorten a failing sequence.
func randomSequences(t *trial) (steps int) {
	seed := t.h.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	known := newRules()
	play := func(sequence []step) error {
		m := newModel(t, known)
		defer t.end()
		return m.play(sequence)
	}
	for i := 0; steps < t.steps; i++ {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		sequence := make([]step, sequenceLength)
		for k := range sequence {
			sequence[k] = draw(random.IntN)
		}
		if err := play(sequence); err != nil {
			t.Fatal(shrink.Report(seed, sequence, err, play))
		}
		steps += len(sequence)
	}
	return steps
}

// model drives a fresh locker and the oracle with the same calls.
type model struct {
	*trial
	l      lock.Locker
	oracle oracle
	grants []*grant // all that were ever granted
	waits  []*wait  // calls that have not returned
	tokens []issued // in the order of their grants
	owners int
}

// grant is a claim that was granted, and the handles that stand for it.
type grant struct {
	*claim
	helds   []*lock.Held
	over    error // ErrNotHeld or ErrLost once it has ended
	revoked bool
	reason  string // of its end or revocation
}

// wait is one call that waits for a claim; of a repeated id there are several.
type wait struct {
	*claim
	call *call
}

// issued is a token and what it was for.
type issued struct {
	token lock.Token
	rs    []lock.Request
}

func newModel(t *trial, known *rules) *model {
	return &model{trial: t, l: t.fresh(nil), oracle: oracle{rules: known}}
}

// play takes the steps, then releases all and looks whether anything is left.
func (m *model) play(steps []step) error {
	for i, s := range steps {
		err := m.take(s)
		if err == nil {
			err = m.settle()
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if err := m.finish(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

func (m *model) finish() error {
	if err := m.snapshot(); err != nil {
		return err
	}
	for len(m.waits) > 0 {
		if err := m.cancel(len(m.waits) - 1); err != nil {
			return err
		}
		if err := m.settle(); err != nil {
			return err
		}
	}
	for _, g := range m.grants {
		if err := m.unlock(g, 0); err != nil {
			return err
		}
	}
	if fault := m.eventually(func() string { return busy(m.Context(), m.l) }); fault != "" {
		return errors.New(fault)
	}
	return nil
}

func (m *model) take(s step) error {
	switch s.kind {
	case tryStep, lockStep:
		return m.acquire(s)
	case cancelStep:
		if len(m.waits) > 0 {
			return m.cancel(s.pick % len(m.waits))
		}
	case holdersStep:
		return m.holders(s)
	case snapshotStep:
		return m.snapshot()
	case revokeStep, breakStep:
		return m.takeAway(s)
	case unlockStep, upgradeStep, downgradeStep:
		if len(m.grants) == 0 {
			return nil
		}
		g := m.grants[s.pick%len(m.grants)]
		if s.kind == unlockStep {
			return m.unlock(g, s.pick)
		}
		return m.convert(g, s)
	}
	return nil
}

// settle demands that exactly the waits have returned that the oracle grants, in
// the order of arrival.
func (m *model) settle() error {
	woken := m.oracle.wake()
	for _, c := range woken {
		for _, w := range m.waits {
			if w.claim != c {
				continue
			}
			if fault := m.back(w.call); fault != "" {
				return fmt.Errorf("%s, though nobody is in its way", fault)
			}
		}
	}
	if len(m.waits) > 0 {
		m.nothingMore()
	}
	var last lock.Token
	for _, c := range woken {
		g := &grant{claim: c}
		m.grants = append(m.grants, g)
		m.waits = slices.DeleteFunc(m.waits, func(w *wait) bool {
			if w.claim == c {
				g.helds = append(g.helds, w.call.held)
			}
			return w.claim == c && w.call.err == nil && w.call.panics == nil
		})
		if err := m.granted(g); err != nil {
			return err
		}
		if g.token <= last {
			return fmt.Errorf("of %s, token %d, and what came before, token %d, the later was granted first", c.has, g.token, last)
		}
		last = g.token
	}
	for _, w := range m.waits {
		if w.call.returned() {
			return fmt.Errorf("the wait of %q for %s, with %v in its way, has returned: %v, panic: %v",
				w.options.Owner, w.has, m.oracle.inTheWay(w.has, w.claim), w.call.err, w.call.panics)
		}
	}
	return nil
}

// granted compares a new grant with its claim and learns its token.
func (m *model) granted(g *grant) error {
	for _, h := range g.helds {
		if fault := unsound(h, g.asked); fault != "" {
			return errors.New(fault)
		}
		if h.Token() != g.helds[0].Token() {
			return fmt.Errorf("one grant has tokens %d and %d", h.Token(), g.helds[0].Token())
		}
	}
	return m.issue(g)
}

// issue learns the token of a new or raised grant, which must be above those of
// all earlier grants that conflict, and nobody's else.
func (m *model) issue(g *grant) error {
	g.token = g.helds[0].Token()
	for _, t := range m.tokens {
		if t.token == g.token || t.token > g.token && m.oracle.clashAll(t.rs, g.has) {
			return fmt.Errorf("%s is granted with token %d after %s with token %d", g.has, g.token, t.rs, t.token)
		}
	}
	m.tokens = append(m.tokens, issued{g.token, g.has})
	return nil
}
