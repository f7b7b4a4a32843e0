package locktest

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// matrix says which modes go together: rows and columns are IS, IX, S, SIX, X. It
// is the table of the textbooks, written once more: the suite does not judge a
// locker by what lock itself says of modes and requests.
var matrix = [...]string{
	"yyyy-",
	"yy---",
	"y-y--",
	"y----",
	"-----",
}

func goTogether(a, b lock.Mode) bool { return matrix[a-lock.IS][b-lock.IS] == 'y' }

// atLeast reports whether a is as strong as b: what goes with a goes with b.
func atLeast(a, b lock.Mode) bool {
	for _, m := range lock.Modes {
		if goTogether(a, m) && !goTogether(b, m) {
			return false
		}
	}
	return true
}

// joined returns the weakest mode that is as strong as both.
func joined(a, b lock.Mode) lock.Mode {
	for _, m := range lock.Modes {
		if atLeast(m, a) && atLeast(m, b) {
			return m
		}
	}
	panic("locktest: X is as strong as all")
}

func intention(m lock.Mode) lock.Mode {
	if m == lock.IS || m == lock.S {
		return lock.IS
	}
	return lock.IX
}

// marks returns what a request does to each node, by the node's path.
func marks(r lock.Request) map[string]lock.Mode {
	marked := map[string]lock.Mode{}
	path := r.Path.String()
	for i := range path {
		if path[i] == '/' && i > 0 {
			marked[path[:i]] = intention(r.Mode)
		}
	}
	if path != "/" {
		marked["/"] = intention(r.Mode)
	}
	marked[path] = r.Mode
	return marked
}

// rules remembers which requests conflict. It is for one goroutine.
type rules struct {
	known map[[2]lock.Request]bool
}

func newRules() *rules { return &rules{known: map[[2]lock.Request]bool{}} }

// clash reports whether some node is marked by both in modes that do not go
// together.
func (k *rules) clash(a, b lock.Request) bool {
	pair := [2]lock.Request{a, b}
	answer, ok := k.known[pair]
	if !ok {
		other := marks(b)
		for node, m := range marks(a) {
			if with, both := other[node]; both && !goTogether(m, with) {
				answer = true
			}
		}
		k.known[pair] = answer
	}
	return answer
}

func (k *rules) clashAny(r lock.Request, rs []lock.Request) bool {
	return slices.ContainsFunc(rs, func(other lock.Request) bool { return k.clash(r, other) })
}

func (k *rules) clashAll(as, bs []lock.Request) bool {
	return slices.ContainsFunc(as, func(a lock.Request) bool { return k.clashAny(a, bs) })
}

// canonical returns a list as a grant shows it: in order of segments, requests
// for one node joined.
func canonical(rs []lock.Request) []lock.Request {
	var list []lock.Request
	for _, r := range rs {
		i := slices.IndexFunc(list, func(other lock.Request) bool { return other.Path == r.Path })
		if i >= 0 {
			list[i].Mode = joined(list[i].Mode, r.Mode)
		} else {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b lock.Request) int {
		return slices.Compare(strings.Split(a.Path.String(), "/"), strings.Split(b.Path.String(), "/"))
	})
	// "/" splits into two empty segments, "/a" into an empty one and "a".
	return list
}

// allAtLeast reports whether requests hold all that others, of the same nodes, ask
// for.
func allAtLeast(has, asked []lock.Request) bool {
	for i := range asked {
		if !atLeast(has[i].Mode, asked[i].Mode) {
			return false
		}
	}
	return true
}

// claim is one acquisition that is present in the oracle, or was.
type claim struct {
	options lock.Options
	asked   []lock.Request // canonical, as first asked for
	has     []lock.Request
	waiting bool
	token   lock.Token // 0 while it waits
}

// oracle is what a locker holds, in the most naive form: a list of acquisitions,
// held or waiting, in the order of their arrival.
type oracle struct {
	*rules
	present []*claim
}

// inTheWay returns what conflicts with requests, in the order of arrival: all of
// it that is present, but for own, and for what came after own if that waits.
func (o *oracle) inTheWay(rs []lock.Request, own *claim) []lock.Holder {
	var found []lock.Holder
	for _, c := range o.present {
		if c == own && own.waiting {
			break
		}
		if c == own {
			continue
		}
		for _, r := range c.has {
			if o.clashAny(r, rs) {
				found = append(found, c.holder(r))
			}
		}
	}
	return found
}

func (c *claim) holder(r lock.Request) lock.Holder {
	return lock.Holder{
		Path: r.Path, Mode: r.Mode, Waiting: c.waiting, Token: c.token,
		ID: c.options.ID, Owner: c.options.Owner, Reason: c.options.Reason,
	}
}

// holders returns all that is present where where says so.
func (o *oracle) holders(where func(lock.Path) bool) []lock.Holder {
	var found []lock.Holder
	for _, c := range o.present {
		for _, r := range c.has {
			if where(r.Path) {
				found = append(found, c.holder(r))
			}
		}
	}
	return found
}

// arrive adds an acquisition and reports whether it is granted at once.
func (o *oracle) arrive(c *claim) bool {
	c.waiting = len(o.inTheWay(c.has, nil)) > 0
	o.present = append(o.present, c)
	return !c.waiting
}

func (o *oracle) leave(c *claim) {
	o.present = slices.DeleteFunc(o.present, func(other *claim) bool { return other == c })
}

// wake grants what waits for nobody any more, and returns it in the order of
// arrival.
func (o *oracle) wake() []*claim {
	var woken []*claim
	for _, c := range o.present {
		if c.waiting && len(o.inTheWay(c.has, c)) == 0 {
			c.waiting = false
			woken = append(woken, c)
		}
	}
	return woken
}

func (o *oracle) withID(id string) *claim {
	for _, c := range o.present {
		if id != "" && c.options.ID == id {
			return c
		}
	}
	return nil
}

// counts returns how many acquisitions are held and how many wait.
func (o *oracle) counts() (held, waiting int) {
	for _, c := range o.present {
		if c.waiting {
			waiting++
		} else {
			held++
		}
	}
	return held, waiting
}
