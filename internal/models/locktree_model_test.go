// The grant rule of lock.Tree: clients repeatedly request locks, wait, hold and release
// them. The model does not describe the tree but runs it: a trial is one tree that gets
// the requests of all present clients in order, and then one move of one client.
//
// The model contains the modes on nodes, their ancestors and descendants, requests for
// several nodes, abandoned waits, and grants that are broken because the holder is dead.
//
// The model omits acquisitions that are repeated by id, upgrades, and TryLock.

package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/lock"
)

// LockTree is the model. It runs its trials one at a time, each once.
type LockTree struct {
	Asks    [][]lock.Request // requests by client; at most maxLockClients
	Times   uint8            // requests of each client
	GiveUps uint8            // abandoned waits in a run
	Breaks  uint8            // broken grants in a run
	Try     func(LockTrial) (LockResult, error)
}

const maxLockClients = 5

// LockTrial is one trial.
type LockTrial struct {
	Present []int // clients in the order of their requests
	Client  int   // the client of the move
	Does    LockMove
}

// LockMove is a move of a client.
type LockMove uint8

// The moves. LockAsks is a move of a client that is not present. The others are moves of
// a present one.
const (
	LockAsks LockMove = iota
	LockReturns
	LockGivesUp
	LockBreaks
)

func (m LockMove) String() string {
	return [...]string{"asks", "gives back", "gives up", "is broken"}[m]
}

// LockResult lists by client which present clients hold their locks.
type LockResult struct {
	Before, After [maxLockClients]bool
}

// lockState is one state of all clients.
type lockState struct {
	Clients [maxLockClients]lockClient
	GiveUps uint8
	Breaks  uint8
	// Other is set if another tree with the same requests in the same order grants
	// other locks.
	Other bool
}

// lockClient is one client. Place is its place among the present clients, from 1.
type lockClient struct {
	Place uint8
	Holds bool
	Left  uint8
}

func (s lockState) String() string {
	var list []string
	for _, i := range s.present() {
		does := "waits"
		if s.Clients[i].Holds {
			does = "holds"
		}
		list = append(list, fmt.Sprintf("%d %s", i, does))
	}
	if list == nil {
		return "no client"
	}
	return strings.Join(list, ", ")
}

// present returns the clients that hold or wait, in the order of their requests.
func (s *lockState) present() []int {
	return placed(s.Clients[:], func(c lockClient) uint8 { return c.Place })
}

// Model returns the model.
func (l LockTree) Model() *explore.Model[lockState] {
	begin := lockState{GiveUps: l.GiveUps, Breaks: l.Breaks}
	for i := range l.Asks {
		begin.Clients[i].Left = l.Times
	}
	try := trials(l.Try)
	return &explore.Model[lockState]{
		Name: "lock tree", Initial: []lockState{begin},
		Next: func(s lockState, step func(string, bool, lockState)) {
			if s.Other {
				return
			}
			for i := range l.Asks {
				l.moves(s, i, func(m LockMove, next lockState) {
					r := try(LockTrial{Present: s.present(), Client: i, Does: m})
					for c := range next.Clients {
						next.Other = next.Other || r.Before[c] != s.Clients[c].Holds
						next.Clients[c].Holds = r.After[c]
					}
					step(fmt.Sprintf("%d %v", i, m), m >= LockGivesUp, next)
				})
			}
		},
		Always: map[string]func(lockState) error{
			"holders are compatible":    l.compatible,
			"no request is overtaken":   l.inOrder,
			"every wait has a conflict": l.waitsForConflict,
			"grants follow from the requests": never(func(s lockState) bool { return s.Other },
				"another tree with the same requests grants other locks"),
		},
		LeadsTo: map[string]explore.LeadsTo[lockState]{"every wait ends": {To: func(s lockState) bool {
			return !slices.ContainsFunc(s.Clients[:], func(c lockClient) bool { return c.Place > 0 && !c.Holds })
		}}},
		Fair: func(label string) bool { return strings.HasSuffix(label, LockReturns.String()) },
		Rests: func(s lockState) bool {
			return !slices.ContainsFunc(s.Clients[:], func(c lockClient) bool { return c.Place > 0 || c.Left > 0 })
		},
	}
}

// moves yields the moves of a client, with the next state without the grants.
func (l *LockTree) moves(s lockState, i int, do func(LockMove, lockState)) {
	c := &s.Clients[i]
	if c.Place == 0 {
		if c.Left > 0 {
			c.Place, c.Left = uint8(len(s.present()))+1, c.Left-1
			do(LockAsks, s)
		}
		return
	}
	holds, place := c.Holds, c.Place
	c.Place = 0
	for j := range s.Clients {
		if s.Clients[j].Place > place {
			s.Clients[j].Place--
		}
	}
	switch {
	case holds:
		do(LockReturns, s)
		if s.Breaks > 0 {
			s.Breaks--
			do(LockBreaks, s)
		}
	case s.GiveUps > 0:
		s.GiveUps--
		do(LockGivesUp, s)
	}
}

func (l *LockTree) compatible(s lockState) error {
	return l.pairs(s, func(a, b int) bool { return s.Clients[a].Holds && s.Clients[b].Holds }, "hold at once")
}

func (l *LockTree) inOrder(s lockState) error {
	return l.pairs(s, func(a, b int) bool { return !s.Clients[a].Holds && s.Clients[b].Holds }, "wait and hold: the later request was granted first")
}

// pairs returns an error for a pair that conflicts and passes; a came first.
func (l *LockTree) pairs(s lockState, pass func(a, b int) bool, what string) error {
	present := s.present()
	for i, a := range present {
		for _, b := range present[i+1:] {
			if pass(a, b) && l.conflict(a, b) {
				return fmt.Errorf("%v and %v %s", l.Asks[a], l.Asks[b], what)
			}
		}
	}
	return nil
}

func (l *LockTree) waitsForConflict(s lockState) error {
	present := s.present()
	for i, b := range present {
		if !s.Clients[b].Holds && !slices.ContainsFunc(present[:i], func(a int) bool { return l.conflict(a, b) }) {
			return fmt.Errorf("%v waits without a conflict", l.Asks[b])
		}
	}
	return nil
}

// granular is the matrix of Gray and others, by held and requested mode, in the order of
// lock.Modes: + for compatible modes. The model has its own copy, because it checks the
// matrix of the tree.
var granular = [...]string{
	"++++-",
	"++---",
	"+-+--",
	"+----",
	"-----",
}

// conflict reports whether two clients mark a node in modes that are not compatible. A
// client marks its nodes, and every ancestor with the intention mode.
func (l *LockTree) conflict(a, b int) bool {
	marked := func(client int) map[string][]lock.Mode {
		marks := make(map[string][]lock.Mode)
		for _, r := range l.Asks[client] {
			path := r.Path.String()
			marks[path] = append(marks[path], r.Mode)
			intent := lock.IX
			if r.Mode == lock.S || r.Mode == lock.IS {
				intent = lock.IS
			}
			for path != "/" {
				path = path[:strings.LastIndexByte(path, '/')]
				if path == "" {
					path = "/"
				}
				marks[path] = append(marks[path], intent)
			}
		}
		return marks
	}
	at := func(m lock.Mode) int { return slices.Index(lock.Modes[:], m) }
	others := marked(b)
	for path, modes := range marked(a) {
		for _, m := range modes {
			for _, o := range others[path] {
				if granular[at(m)][at(o)] == '-' {
					return true
				}
			}
		}
	}
	return false
}
