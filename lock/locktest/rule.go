package locktest

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// The suite has its own copy of the rule, so that it does not judge a locker by
// the code of package lock.

// matrix is the table of compatible modes; rows and columns are IS, IX, S, SIX, X.
var matrix = [...]string{
	"yyyy-",
	"yy---",
	"y-y--",
	"y----",
	"-----",
}

func compatible(a, b lock.Mode) bool { return matrix[a-lock.IS][b-lock.IS] == 'y' }

// atLeast reports whether a is as strong as b: every mode that is compatible with
// a is compatible with b.
func atLeast(a, b lock.Mode) bool {
	return !slices.ContainsFunc(lock.Modes[:], func(m lock.Mode) bool { return compatible(a, m) && !compatible(b, m) })
}

// join returns the weakest mode that is as strong as both.
func join(a, b lock.Mode) lock.Mode {
	i := slices.IndexFunc(lock.Modes[:], func(m lock.Mode) bool { return atLeast(m, a) && atLeast(m, b) })
	return lock.Modes[i]
}

// joinAll returns requests raised by a mode.
func joinAll(rs []lock.Request, m lock.Mode) []lock.Request {
	raised := slices.Clone(rs)
	for i := range raised {
		raised[i].Mode = join(raised[i].Mode, m)
	}
	return raised
}

// lowerAll returns requests lowered to a mode.
func lowerAll(rs []lock.Request, m lock.Mode) []lock.Request {
	lowered := slices.Clone(rs)
	for i := range lowered {
		lowered[i].Mode = m
	}
	return lowered
}

func allAtLeast(rs []lock.Request, m lock.Mode) bool {
	return !slices.ContainsFunc(rs, func(r lock.Request) bool { return !atLeast(r.Mode, m) })
}

// intention returns the mode in which a request of mode m marks the ancestors of its
// node.
func intention(m lock.Mode) lock.Mode {
	if m == lock.IS || m == lock.S {
		return lock.IS
	}
	return lock.IX
}

// scopeOf returns where a path lies relative to another one, and 0 if it lies
// beside it.
func scopeOf(p, relative lock.Path) lock.Scope {
	above := func(a, b lock.Path) bool {
		return a.IsRoot() || strings.HasPrefix(b.String(), a.String()+"/")
	}
	switch {
	case p == relative:
		return lock.At
	case above(p, relative):
		return lock.Above
	case above(relative, p):
		return lock.Below
	}
	return 0
}

// conflict reports whether some node is marked by requests of both lists in modes
// that are not compatible. That is the node of the upper request of a pair: above
// it both requests mark with intentions, which are compatible.
func conflict(as, bs []lock.Request) bool {
	for _, a := range as {
		for _, b := range bs {
			ours, theirs := a.Mode, b.Mode
			switch scopeOf(a.Path, b.Path) {
			case lock.Above:
				theirs = intention(theirs)
			case lock.Below:
				ours = intention(ours)
			case 0:
				continue
			}
			if !compatible(ours, theirs) {
				return true
			}
		}
	}
	return false
}

// canonical returns a list as a grant shows it: in the order of segments, with the
// requests for one node joined.
func canonical(rs []lock.Request) []lock.Request {
	joined := map[lock.Path]lock.Mode{}
	for _, r := range rs {
		if m, ok := joined[r.Path]; ok {
			r.Mode = join(r.Mode, m)
		}
		joined[r.Path] = r.Mode
	}
	paths := slices.SortedFunc(maps.Keys(joined), func(a, b lock.Path) int {
		return slices.Compare(strings.Split(a.String(), "/"), strings.Split(b.String(), "/"))
	})
	list := make([]lock.Request, len(paths))
	for i, p := range paths {
		list[i] = lock.Request{Path: p, Mode: joined[p]}
	}
	return list
}
