package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/shrink"
	"github.com/interlock-go/interlock/lifecycle"
)

// Differential makes the same random calls to two stores and demands the same
// answers: those of stores in the subtest Store, those of a manager over each in
// the subtest Manager. The first store is the reference, most often
// [lifecycle.MemoryStore]. What is the store's own is not compared but for whether
// it is the same as before: revisions, tokens, times and where numbers begin. What
// one of the two does not declare is not asked. The shortest sequence found that
// differs is told, with its seed.
//
// Of the harnesses New is used, and Sequences and Seed of the first.
func Differential(t *testing.T, reference, other Harness) {
	t.Helper()
	t.Run("Store", func(t *testing.T) { differStores(t, &reference, &other) })
	t.Run("Manager", func(t *testing.T) { differManagers(t, &reference, &other) })
}

// differ plays random sequences of steps with two players, and fails with a
// short sequence to which their answers differ.
func differ[S fmt.Stringer](t testing.TB, h *Harness, length int, draw func(source) S, players func(run int) [2]func(S) string) {
	t.Helper()
	seed := cmp.Or(h.Seed, rand.Uint64())
	runs, answers := 0, 0
	play := func(steps []S) error {
		runs++
		two := players(runs)
		for i, s := range steps {
			first, second := two[0](s), two[1](s)
			if first != second {
				return fmt.Errorf("step %d is answered\n    %s\nby the first store, and by the second\n    %s", i+1, first, second)
			}
			answers++
		}
		return nil
	}
	for i := range cmp.Or(h.Sequences, 40) {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		steps := make([]S, length)
		for k := range steps {
			steps[k] = draw(random.IntN)
		}
		if err := play(steps); err != nil {
			t.Fatal(shrink.Report(seed, steps, err, play))
		}
	}
	t.Logf("%d answers in %d sequences are the same", answers, runs)
}

// two opens a store of each harness, and returns what both can do.
func two(t testing.TB, reference, other *Harness) (stores [2]lifecycle.Store, both lifecycle.Capabilities) {
	t.Helper()
	for i, h := range []*Harness{reference, other} {
		stores[i] = h.New(t)
		if stores[i] == nil {
			t.Fatal("storetest: New of a harness returned no store")
		}
		closeLater(t, stores[i])
		if lie := dishonest(stores[i]); lie != "" {
			t.Fatal(lie)
		}
	}
	a, b := stores[0].Capabilities(), stores[1].Capabilities()
	return stores, lifecycle.Capabilities{
		Changes: min(a.Changes, b.Changes), History: a.History && b.History, Messages: a.Messages && b.Messages,
	}
}

// revision names a revision of an object; those of two objects may be alike.
type revision struct {
	object   int
	revision lifecycle.Revision
}

// names gives each value that is seen the number at which it was seen first.
type names[K comparable] map[K]int

func (n names[K]) of(value K) int {
	if _, known := n[value]; !known {
		n[value] = len(n)
	}
	return n[value]
}

// class names the sentinels that an error matches: how a caller tells errors
// apart.
func class(err error) string {
	if err == nil {
		return "ok"
	}
	var found []string
	for _, sentinel := range []error{
		lifecycle.ErrConflict, lifecycle.ErrBusy, lifecycle.ErrNotFound, lifecycle.ErrExists, lifecycle.ErrStale,
		lifecycle.ErrPrecondition, lifecycle.ErrInvalid, lifecycle.ErrForeign, lifecycle.ErrClosed, lifecycle.ErrUnknownOutcome,
		errors.ErrUnsupported, fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrGuard, fsm.ErrForcedOnly,
		fsm.ErrUnknownState, fsm.ErrUnknownEvent,
	} {
		if errors.Is(err, sentinel) {
			found = append(found, sentinel.Error())
		}
	}
	if len(found) == 0 {
		return "an error of its own: " + err.Error()
	}
	return strings.Join(found, ", ")
}
