package fsmtest_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

func TestRace(t *testing.T) {
	passes(t, func(t testing.TB) {
		fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, nil), &fsmtest.RaceConfig{Goroutines: 5, Rounds: 2})
	}, "disk: 46 races had one winner; 24 steps cannot have one")
	fsmtest.Race(t, disks.Table(), fsmtest.Drive(disks, payload), nil)
}

// torn is a system that looks and moves in two steps: everybody may win.
type torn struct {
	m      *fsm.Machine[string, string, disk]
	mu     sync.Mutex
	at     fsm.Status[string]
	losers bool // nobody wins: all are refused
}

func (s *torn) Reset(testing.TB) string {
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

// meet holds who has looked until all have, so that the race is lost every time.
var meet sync.WaitGroup

func TestRaceFindsSeveralWinners(t *testing.T) {
	system := &torn{m: fsmtest.Puppets(disks)}
	meet.Add(1)
	var once sync.Once
	waits := &bentRace{torn: system, entered: func() { once.Do(func() { go meet.Done() }) }}
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), waits, nil) }, "8 of 8 are accepted; the first answer is creating")
	system.losers = true
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), system, nil) }, "0 of 8 are accepted")
	begins := &bent{Driver: fsmtest.Drive(disks, nil), reset: func(string) string { return "gone" }}
	fails(t, func(t testing.TB) { fsmtest.Race(t, disks.Table(), begins, nil) }, "begins in gone")
	loops := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "loop", Initial: "s", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "s"}, {Name: "t"}},
		Rows: fsm.Rows(fsm.Move("s", "e", "t"), fsm.Move("t", "e", "s")),
	})
	fails(t, func(t testing.TB) { fsmtest.Race(t, loops.Table(), fsmtest.Drive(loops, nil), nil) }, "no step has a single winner")
}

// bentRace lets the first few in before it lets anybody on.
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

// The walk tells its seed, makes what fails short, and plays it again from there.
func TestWalk(t *testing.T) {
	passes(t, func(t testing.TB) {
		fsmtest.Walk(t, disks.Table(), fsmtest.Drive(disks, payload), &fsmtest.WalkConfig{Seed: 7})
	}, "disk: Seed 7: 1000 requests, ")
	forgets := &bent{Driver: fsmtest.Model(disks.Table()), apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		state, err := d.Apply(t, r)
		if before == "trash" && state == "deleting" {
			state = "gone"
		}
		return state, err
	}}
	walk := func(seed uint64) string {
		r := record(t, func(t testing.TB) {
			fsmtest.Walk(t, disks.Table(), forgets, &fsmtest.WalkConfig{Seed: seed, Requests: 20_000})
		})
		require.True(t, r.Failed())
		return r.Text()
	}
	text := walk(7)
	require.Contains(t, text, "a random sequence (Seed 7) fails: request 6, delete by user")
	require.Contains(t, text, "ends in gone and should end in deleting")
	require.NotContains(t, text, "  7 ", "no request is too many")
	require.Equal(t, text, walk(7))
	// With a model of one's own.
	passes(t, func(t testing.TB) {
		fsmtest.Walk(t, disks.Table(), fsmtest.Drive(disks, nil), &fsmtest.WalkConfig{Model: fsmtest.Drive(disks, payload)})
	})
	empty := &fsm.Table{Name: "empty"}
	fails(t, func(t testing.TB) { fsmtest.Walk(t, empty, nil, nil) }, "nothing can be asked")
}
