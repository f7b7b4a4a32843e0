package fsmtest_test

import (
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func TestRace(t *testing.T) {
	passes(t, func(t testing.TB) {
		fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, nil), &fsmtest.RaceConfig{Goroutines: 5, Rounds: 2})
	}, "disk: 46 races had one winner; 24 steps cannot have one")
	fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, payload), nil)
}

// torn is a system that reads and moves in two steps, so that several requests may win.
type torn struct {
	m      *fsm.Machine[string, string, disk]
	mu     sync.Mutex
	at     fsm.Status[string]
	losers bool // whether it refuses all requests
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
	meet.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = step.Status
	return step.State, nil
}

// meet delays every request until all have read the state, so that the race is lost
// every time.
var meet sync.WaitGroup

func TestRaceFindsSeveralWinners(t *testing.T) {
	system := &torn{m: fsmtest.ScriptedGuards(disks)}
	meet.Add(1)
	var once sync.Once
	waits := &bentRace{torn: system, entered: func() { once.Do(func() { go meet.Done() }) }}
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), waits, nil) }, "8 of 8 are accepted; the first answer is creating")
	system.losers = true
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), system, nil) }, "0 of 8 are accepted")
	begins := &bent{Driver: fsmtest.Drive(disks, nil), reset: func(string) string { return "gone" }}
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), begins, nil) }, "a new object is in gone instead of absent")
	loops := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "loop", Initial: "s", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "s"}, {Name: "t"}},
		Rows: fsm.Rows(fsm.Move("s", "e", "t"), fsm.Move("t", "e", "s")),
	})
	fails(t, func(t testing.TB) { fsmtest.Race(t, loops.Table(), fsmtest.Drive(loops, nil), nil) }, "no step has a single winner")
}

// bentRace waits for eight requests before one of them goes on.
type bentRace struct {
	*torn
	entered func()
	mu      sync.Mutex
	n       int
}

func (b *bentRace) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	b.mu.Lock()
	if b.n++; b.n == 8 {
		b.entered()
	}
	b.mu.Unlock()
	return b.torn.Apply(t, r)
}
