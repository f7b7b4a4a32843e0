package locktest

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// step is one call of a random sequence, as numbers that mean something only
// against the model's state: a sequence from which steps are taken away is still
// a sequence, so that a failing one can be made short.
type step struct {
	kind  kind
	rs    []lock.Request
	list  bool // asked for as a list, also if it is of one request
	id    int  // of the request: 0 none
	pick  int  // which grant, wait or token, modulo how many there are
	mode  lock.Mode
	scope lock.Scope
}

type kind uint8

const (
	tryStep kind = iota
	lockStep
	cancelStep
	unlockStep
	upgradeStep
	downgradeStep
	holdersStep
	snapshotStep
	revokeStep
	breakStep
)

var kindNames = [...]string{
	"try", "lock", "cancel wait", "unlock grant", "upgrade grant", "downgrade grant",
	"holders", "snapshot", "revoke token", "break token",
}

// odds is how often each kind comes, of their sum.
var odds = [...]int{
	tryStep: 26, lockStep: 24, cancelStep: 6, unlockStep: 20, upgradeStep: 6, downgradeStep: 6,
	holdersStep: 4, snapshotStep: 3, revokeStep: 2, breakStep: 3,
}

// world is where the random requests are: above and below each other, beside
// each other, and beside in name only.
var world = func() (paths []lock.Path) {
	for _, p := range []string{"/", "/a", "/a/b", "/a/c", "/a/b/d", "/ab", "/a!", "/c/d/e"} {
		paths = append(paths, lock.MustParse(p))
	}
	return paths
}()

// source gives numbers from 0 to n-1.
type source func(n int) int

// draw makes up a step.
func draw(n source) step {
	s := step{
		pick: n(64), mode: lock.Modes[n(len(lock.Modes))],
		scope: lock.Scope(1 + n(int(lock.Above|lock.At|lock.Below))),
	}
	sum := 0
	for _, o := range odds {
		sum += o
	}
	for at := n(sum); at >= odds[s.kind]; s.kind++ {
		at -= odds[s.kind]
	}
	count := 1
	if n(4) == 0 {
		count, s.list = 1+n(3), true
	}
	for range count {
		s.rs = append(s.rs, lock.Request{Path: world[n(len(world))], Mode: lock.Modes[n(len(lock.Modes))]})
	}
	s.id = max(0, n(9)-6)
	return s
}

// String tells the step as a line for people.
func (s step) String() string {
	var b strings.Builder
	b.WriteString(kindNames[s.kind])
	switch s.kind {
	case tryStep, lockStep:
		fmt.Fprintf(&b, " %s", s.rs)
		if s.list {
			b.WriteString(" as a list")
		}
		if s.id > 0 {
			fmt.Fprintf(&b, ", id %d", s.id)
		}
	case cancelStep, unlockStep, revokeStep, breakStep:
		fmt.Fprintf(&b, " %d", s.pick)
	case upgradeStep, downgradeStep:
		fmt.Fprintf(&b, " %d to %s", s.pick, s.mode)
	case holdersStep:
		fmt.Fprintf(&b, " %s %s", s.scope, s.rs[0].Path)
	case snapshotStep:
	}
	return b.String()
}
