package fsmtest_test

import (
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func TestRace(t *testing.T) {
	passes(t, func(t testing.TB) {
		fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, nil))
	}, "disk: 46 races had one winner; 24 steps cannot have one")
	fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, payload))
}

// torn is a system that reads and moves in two steps, so that several requests may win.
type torn struct {
	m      *fsm.Machine[string, string, disk]
	mu     sync.Mutex
	at     fsm.Status[string]
	losers bool           // whether it refuses all requests
	read   sync.WaitGroup // delays every request until all have read the state
}

func (s *torn) Reset(testing.TB, string) string {
	s.at = s.m.Start()
	return s.at.State
}

func (s *torn) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	step, err := s.m.Next(r.Context(t.Context()), at, r.Event, r.Actor, nil)
	if err != nil || s.losers {
		return at.State, fsm.ErrConflict
	}
	s.read.Done()
	s.read.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = step.Status
	return step.State, nil
}

func TestRaceFindsSeveralWinners(t *testing.T) {
	system := &torn{m: fsmtest.ScriptedGuards(disks)}
	system.read.Add(8)
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), system) }, "8 of 8 are accepted; the first answer is creating")
	system.losers = true
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), system) }, "0 of 8 are accepted")
	begins := &bent{Driver: fsmtest.Drive(disks, nil), reset: func(string) string { return "gone" }}
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), begins) }, "a new object is in gone instead of absent")
	loops := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "loop", Initial: "s", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "s"}, {Name: "t"}},
		Rows: fsm.Rows(fsm.Move("s", "e", "t"), fsm.Move("t", "e", "s")),
	})
	fails(t, func(t testing.TB) { fsmtest.Race(t, loops.Table(), fsmtest.Drive(loops, nil)) }, "no step has a single winner")
}
