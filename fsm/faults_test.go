package fsm_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

type spec = fsm.Spec[string, string]

// sound is the table to which every fault is added. It has the rows 0 to 3.
func sound() spec {
	return spec{
		Name: "door", Initial: "open", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{
			{Name: "open"},
			{Name: "closing", Kind: fsm.Transitional},
			{Name: "closed"},
			{Name: "gone", Kind: fsm.Final},
		},
		Rows: fsm.Rows(
			fsm.Move("open", "close", "closing").By(user),
			fsm.Return("closing", "stuck").After(time.Minute),
			fsm.Move("closing", "shut", "closed").By(worker),
			fsm.Move("closed", "remove", "gone").By(user),
		),
	}
}

// with adds rows. The first one has the index 4.
func with(s spec, rows ...row) spec {
	s.Rows = append(s.Rows, rows...)
	return s
}

func withState(s spec, st fsm.State[string], rows ...row) spec {
	s.States = append(s.States, st)
	return with(s, rows...)
}

func withActors(s spec, n int) spec {
	for i := len(s.Actors); i < n; i++ {
		s.Actors = append(s.Actors, fsm.Actor(fmt.Sprintf("actor%d", i)))
	}
	return s
}

func edit(change func(*spec)) spec {
	s := sound()
	change(&s)
	return s
}

func many(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

var long = strings.Repeat("x", fsm.MaxName+1)

// Guards of the right and of a wrong payload type.
var noneGuard = fsm.When("even", func(context.Context, *none, *none) error { return nil })

// wrapped is no guard that When made.
type wrapped struct{ fsm.Guard[none] }

var otherGuard = fsm.When("other", func(context.Context, *int, *int) error { return nil })

// faults lists every fault that New refuses. Each spec has one.
var faults = []struct {
	name string
	spec spec
	code string
	text string
}{
	{
		"machine without a name", edit(func(s *spec) { s.Name = "" }),
		fsm.NoName, "machine: empty name",
	},
	{
		"state without a name", withState(sound(), fsm.State[string]{}, fsm.Move("open", "x", ""), fsm.Move("", "y", "open")),
		fsm.NoName, "state 4: empty name",
	},
	{
		"event without a name", with(sound(), fsm.Move("open", "", "closed")),
		fsm.NoName, "event 4: empty name",
	},
	{
		"actor without a name", edit(func(s *spec) { s.Actors = append(s.Actors, "") }),
		fsm.NoName, "actor 2: empty name",
	},
	{
		"name too long", edit(func(s *spec) { s.Name = long }),
		fsm.BadName, "machine: name of 257 bytes, more than 256",
	},
	{
		"name not UTF-8", with(sound(), fsm.Move("open", "\xff", "closed")),
		fsm.BadName, `event 4: name "\xff" is not UTF-8`,
	},
	{
		"name with a control character", edit(func(s *spec) { s.Actors = append(s.Actors, "a\nb") }),
		fsm.BadName, `actor 2: control character in name "a\nb"`,
	},
	{
		"name of a guard too long", with(sound(), fsm.Move("open", "x", "closed").If(fsm.When(long, func(context.Context, *none, *none) error { return nil }))),
		fsm.BadName, "row 4 (open -x-> closed): guard: name of 257 bytes, more than 256",
	},
	{
		"name of a guard with a control character", with(sound(), fsm.Move("open", "x", "closed").If(fsm.When("a\nb", func(context.Context, *none, *none) error { return nil }))),
		fsm.BadName, `row 4 (open -x-> closed): guard: control character in name "a\nb"`,
	},
	{
		"actor declared twice", edit(func(s *spec) { s.Actors = append(s.Actors, user) }),
		fsm.DuplicateName, `actor 2: name "user" is taken`,
	},
	{
		"65 actors", withActors(edit(func(s *spec) { s.Rows[1] = s.Rows[1].By(fsm.Sweeper) }), 64),
		fsm.TooLarge, "65 actors, more than 64",
	},
	{
		"too many events",
		edit(func(s *spec) {
			for _, n := range many(fsm.MaxEvents - 3) {
				s.Rows = append(s.Rows, fsm.Ignore("open", n))
			}
		}),
		fsm.TooLarge, "4097 events, more than 4096",
	},
	{
		"initial state not declared", edit(func(s *spec) { s.Initial = "nowhere" }),
		fsm.NoInitial, `the initial state is not declared: "nowhere"`,
	},
	{
		"source not declared", with(sound(), fsm.Move("open", "x", "closed").AlsoFrom("closing", "nowhere")),
		fsm.UnknownState, `row 4 (open|closing|nowhere -x-> closed): names a state that is not declared: "nowhere"`,
	},
	{
		"target not declared", with(sound(), fsm.Move("open", "x", "nowhere").Superseding()),
		fsm.UnknownState, `row 4 (open -x-> nowhere): the target is not declared: "nowhere"`,
	},
	{
		"origin not declared", with(sound(), fsm.Move("closing", "x", "closed").Of("nowhere")),
		fsm.UnknownState, `row 4 (closing -x-> closed): names a state that is not declared: "nowhere"`,
	},
	{
		"exclusion not declared", with(sound(), fsm.FromAny("x", "closed").Excluding("nowhere")),
		fsm.UnknownState, `row 4 (any -x-> closed): names a state that is not declared: "nowhere"`,
	},
	{
		"target of a state not declared", edit(func(s *spec) { s.States[1].Target = new("nowhere") }),
		fsm.UnknownState, `state closing: the target is not declared: "nowhere"`,
	},
	{
		"actor not declared", with(sound(), fsm.Move("open", "x", "closed").By(guest)),
		fsm.UnknownActor, `row 4 (open -x-> closed): names an actor that is not declared: "guest"`,
	},
	{
		"no actor",
		spec{
			Name: "door", Initial: "a", States: []fsm.State[string]{{Name: "a"}, {Name: "b"}},
			Rows: fsm.Rows(fsm.Move("a", "x", "b"), fsm.Move("b", "x", "a")),
		},
		fsm.NoActor, "no actor is declared, and the table has rows",
	},
	{
		"no actor for the only row",
		spec{
			Name: "door", Initial: "a", States: []fsm.State[string]{{Name: "a"}, {Name: "b", Kind: fsm.Final}},
			Rows: fsm.Rows(fsm.Move("a", "x", "b")),
		},
		fsm.NoActor, "no actor is declared, and the table has rows",
	},
	{
		"row without a source", with(sound(), row{Event: "x", To: "open"}),
		fsm.NoSource, "row 4 ( -x-> open): matches no state",
	},
	{
		"row without a source, the only one to a state", edit(func(s *spec) { s.Rows[2].From = nil }),
		fsm.NoSource, "row 2 ( -shut-> closed): matches no state",
	},
	{
		"wildcard that excludes every state", with(sound(), fsm.FromAny("x", "open").Excluding("closing", "closed")),
		fsm.NoSource, "row 4 (any -x-> open): matches no state",
	},
	{
		"negative timeout", with(sound(), fsm.Move("open", "x", "closed").After(-time.Second)),
		fsm.BadRow, "row 4 (open -x-> closed): negative timeout -1s",
	},
	{
		"negative timeout of a transitional state",
		withState(sound(), fsm.State[string]{Name: "hung", Kind: fsm.Transitional},
			fsm.Move("open", "x", "hung"), fsm.Return("hung", "y").After(-time.Second)),
		fsm.BadRow, "row 5 (hung -y-> origin): negative timeout -1s",
	},
	{
		"unknown Then", with(sound(), row{From: []string{"open"}, Event: "x", Then: 7}),
		fsm.BadRow, "row 4 (open -x-> ?): unknown Then 7",
	},
	{
		"source named twice", with(sound(), fsm.Move("open", "x", "closed").AlsoFrom("open")),
		fsm.BadRow, "row 4 (open|open -x-> closed): names open twice as a source",
	},
	{
		"return from a resting state", with(sound(), fsm.Return("closed", "x")),
		fsm.BadRow, "row 4 (closed -x-> origin): returns from closed, which rests and is its own origin",
	},
	{
		"ignore row with a timeout", with(sound(), fsm.Ignore("open", "x").After(time.Second)),
		fsm.BadRow, "row 4 (open -x-> ignored): an ignore row has a timeout",
	},
	{
		"ignore row with a timeout in a transitional state", with(sound(), fsm.Ignore("closing", "x").After(time.Second)),
		fsm.BadRow, "row 4 (closing -x-> ignored): an ignore row has a timeout",
	},
	{
		"superseding return", with(sound(), fsm.Return("closing", "x").Superseding()),
		fsm.BadRow, "row 4 (closing -x-> origin): supersedes, but starts no operation: the target is not transitional",
	},
	{
		"superseding row that starts no operation", with(sound(), fsm.Move("closing", "x", "open").Superseding()),
		fsm.BadRow, "row 4 (closing -x-> open): supersedes, but starts no operation: the target is not transitional",
	},
	{
		"wildcard with sources", with(sound(), fsm.FromAny("x", "closed").AlsoFrom("gone")),
		fsm.BadRow, "row 4 (any -x-> closed): names sources beside the wildcard",
	},
	{
		"exclusion without wildcard", with(sound(), fsm.Move("open", "x", "closed").Excluding("closing")),
		fsm.BadRow, "row 4 (open -x-> closed): excludes states without a wildcard",
	},
	{
		"guard of another payload type", with(sound(), fsm.Move("open", "x", "closed").If(otherGuard)),
		fsm.BadGuard, `row 4 (open -x-> closed): guard "other" has the payload type int, and the machine fsm_test.none`,
	},
	{
		"guard without a name", with(sound(), fsm.Move("open", "x", "closed").If(fsm.When("", func(context.Context, *none, *none) error { return nil }))),
		fsm.BadGuard, "row 4 (open -x-> closed): a guard without name or function",
	},
	{
		"guard without a function", with(sound(), fsm.Move("open", "x", "closed").If(fsm.When[none]("hollow", nil))),
		fsm.BadGuard, "row 4 (open -x-> closed): a guard without name or function",
	},
	{
		"row declared twice", with(sound(), fsm.Move("open", "close", "closing").By(user)),
		fsm.DuplicateRow, "row 4 (open -close-> closing): is equal to row 0 in open",
	},
	{
		"row with a guard declared twice, with its origins in another order",
		with(
			withState(sound(), fsm.State[string]{Name: "ajar"}, fsm.Move("ajar", "close", "closing").AlsoFrom("closed"), fsm.Move("open", "x", "ajar")),
			fsm.Move("closing", "y", "closed").If(noneGuard).Of("open", "ajar"),
			fsm.Move("closing", "y", "closed").If(noneGuard).Of("ajar", "open"),
		),
		fsm.DuplicateRow, "row 7 (closing -y-> closed): is equal to row 6 in closing",
	},
	{
		"forced row declared twice", with(sound(), fsm.Move("open", "x", "closed").OnlyForced(), fsm.Move("open", "x", "closed").OnlyForced()),
		fsm.DuplicateRow, "row 5 (open -x-> closed): is equal to row 4 in open",
	},
	{
		"two targets for one event", with(sound(), fsm.Move("open", "close", "closed")),
		fsm.AmbiguousRow, "row 4 (open -close-> closed): is never tried in open for user: row 0 (open -close-> closing) comes first",
	},
	{
		"two targets under one guard", with(sound(), fsm.Move("open", "x", "closed").If(noneGuard), fsm.Move("open", "x", "gone").If(noneGuard)),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open: row 4 (open -x-> closed) takes the same actors first",
	},
	{
		"forced row after one for all actors", with(sound(), fsm.Move("open", "x", "closed"), fsm.Move("open", "x", "gone").OnlyForced()),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open: row 4 (open -x-> closed) takes the same actors first",
	},
	{
		"forced row after an equal one without force", with(sound(), fsm.Move("open", "x", "closed"), fsm.Move("open", "x", "closed").OnlyForced()),
		fsm.AmbiguousRow, "row 5 (open -x-> closed): is never tried in open: row 4 (open -x-> closed) takes the same actors first",
	},
	{
		"row with a guard after one without", with(sound(), fsm.Move("open", "x", "closed"), fsm.Move("open", "x", "gone").If(noneGuard)),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open: row 4 (open -x-> closed) takes the same actors first",
	},
	{
		"row of one actor after one for all", with(sound(), fsm.Move("open", "x", "closed"), fsm.Move("open", "x", "gone").By(user)),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open: row 4 (open -x-> closed) takes the same actors first",
	},
	{
		"row of two actors after one of the first", with(sound(), fsm.Move("open", "x", "closed").By(user), fsm.Move("open", "x", "gone").By(user, worker)),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open for user: row 4 (open -x-> closed) comes first",
	},
	{
		"row of all actors after one of two", with(sound(), fsm.Move("open", "x", "closed").By(worker, user), fsm.Move("open", "x", "gone")),
		fsm.AmbiguousRow, "row 5 (open -x-> gone): is never tried in open for user, worker: row 4 (open -x-> closed) comes first",
	},
	{
		"row declared again for one more actor", with(sound(), fsm.Move("open", "x", "closed").By(user), fsm.Move("open", "x", "closed").By(user, worker)),
		fsm.DuplicateRow, "row 5 (open -x-> closed): repeats row 4 in open for user",
	},
	{
		"row of the actors of the second of two",
		with(sound(), fsm.Move("open", "x", "closed").By(user), fsm.Move("open", "x", "gone").By(worker), fsm.Move("open", "x", "closed").By(worker)),
		fsm.AmbiguousRow, "row 6 (open -x-> closed): is never tried in open: row 5 (open -x-> gone) takes the same actors first",
	},
	{
		"row after one with a guard and one without",
		with(sound(), fsm.Move("open", "x", "closed").If(noneGuard), fsm.Move("open", "x", "gone"), fsm.Move("open", "x", "closed")),
		fsm.AmbiguousRow, "row 6 (open -x-> closed): is never tried in open: row 5 (open -x-> gone) takes the same actors first",
	},
	{
		"ignore row after a return", with(sound(), fsm.Return("closing", "x"), fsm.Ignore("closing", "x")),
		fsm.AmbiguousRow, "row 5 (closing -x-> ignored): is never tried in closing: row 4 (closing -x-> origin) takes the same actors first",
	},
	{
		"origin condition after an equal row without", with(sound(), fsm.Move("closing", "x", "closed"), fsm.Move("closing", "x", "closed").Of("open")),
		fsm.AmbiguousRow, "row 5 (closing -x-> closed): is never tried in closing: row 4 (closing -x-> closed) takes the same actors first",
	},
	{
		"origin condition after a wider one", with(sound(), fsm.Move("closing", "x", "closed").Of("open"), fsm.Return("closing", "x").Of("open")),
		fsm.AmbiguousRow, "row 5 (closing -x-> origin): is never tried in closing: row 4 (closing -x-> closed) takes the same actors first",
	},
	{
		"state without a row to it", withState(sound(), fsm.State[string]{Name: "island"}, fsm.Move("island", "x", "open")),
		fsm.Unreachable, "state island: no object gets there",
	},
	{
		"transitional state without a row to it", withState(sound(), fsm.State[string]{Name: "island", Kind: fsm.Transitional}, fsm.Move("island", "x", "open").After(time.Minute)),
		fsm.Unreachable, "state island: no object gets there",
	},
	{
		"state without a row to it, with an ignore row", withState(sound(), fsm.State[string]{Name: "island"}, fsm.Move("island", "x", "open"), fsm.Ignore("island", "y")),
		fsm.Unreachable, "state island: no object gets there",
	},
	{
		"state with Manual and without a row to it",
		withState(sound(), fsm.State[string]{Name: "island", Kind: fsm.Transitional, Manual: "operator"}, fsm.Move("island", "x", "open")),
		fsm.Unreachable, "state island: no object gets there",
	},
	{
		"resting dead end", withState(sound(), fsm.State[string]{Name: "trap"}, fsm.Move("open", "x", "trap"), fsm.Move("trap", "x", "trap"), fsm.Ignore("trap", "y")),
		fsm.DeadEnd, "state trap: no row leads out, and it is neither final nor absent",
	},
	{
		"final state left without force", with(sound(), fsm.Move("gone", "x", "open")),
		fsm.FinalExit, "row 4 (gone -x-> open): leaves the final state gone without force",
	},
	{
		"return without an origin", edit(func(s *spec) { s.Initial = "closing"; s.Rows = append(s.Rows, fsm.Move("closed", "x", "open")) }),
		fsm.NoOrigin, "row 1 (closing -stuck-> origin): an object in closing may have begun in closing and have no origin to return to",
	},
	{
		"origin that no object has", with(sound(), fsm.Move("closing", "x", "closed").Of("gone")),
		fsm.NeverFits, "row 4 (closing -x-> closed): no object has one of these origins there",
	},
	{
		"transitional state without timeout", withState(sound(), fsm.State[string]{Name: "moving", Kind: fsm.Transitional}, fsm.Move("open", "x", "moving"), fsm.Return("moving", "y")),
		fsm.NoDeadline, "state moving: transitional, with neither a timeout nor Manual",
	},
	{
		"Manual and a timeout", edit(func(s *spec) { s.States[1].Manual = "operator" }),
		fsm.NeedlessManual, "state closing: Manual on a state that has a timeout",
	},
	{
		"Manual on a resting state", edit(func(s *spec) { s.States[0].Manual = "operator" }),
		fsm.NeedlessManual, "state open: Manual on a state that rests",
	},
	{
		"timeout in an absent state", withState(sound(), fsm.State[string]{Name: "void", Kind: fsm.Absent}, fsm.Move("open", "x", "void"), fsm.Move("void", "x", "open").After(time.Hour)),
		fsm.DeadlineFromAbsent, "row 5 (void -x-> open): a timeout in the absent state void",
	},
	{
		"self row with a timeout that does not supersede", with(sound(), fsm.Move("closing", "x", "closing").After(time.Second)),
		fsm.EndlessTimeout, "state closing: row 4 (closing -x-> closing) comes back after every timeout, for ever, in the same operation: use Redo",
	},
	{
		"four sources, one not declared", with(sound(), fsm.Move("open", "x", "open").AlsoFrom("closing", "closed", "nowhere")),
		fsm.UnknownState, `row 4 (open|closing|... -x-> open): names a state that is not declared: "nowhere"`,
	},
	{
		"state of an unknown kind", edit(func(s *spec) { s.States[0].Kind = 5 }),
		fsm.BadState, "state open: unknown kind 5",
	},
	{
		"guard that When did not make", with(sound(), fsm.Move("open", "x", "closed").If(&noneGuard)),
		fsm.BadGuard, "row 4 (open -x-> closed): a guard of type *fsm.Guard[github.com/interlock-go/interlock/fsm_test.none], which When did not make",
	},
	{
		"guard that is a nil pointer", with(sound(), fsm.Move("open", "x", "closed").If((*fsm.Guard[none])(nil))),
		fsm.BadGuard, "row 4 (open -x-> closed): a guard of type *fsm.Guard[github.com/interlock-go/interlock/fsm_test.none], which When did not make",
	},
	{
		"type that embeds a guard", with(sound(), fsm.Move("open", "x", "closed").If(wrapped{noneGuard})),
		fsm.BadGuard, "row 4 (open -x-> closed): a guard of type fsm_test.wrapped, which When did not make",
	},
	{
		"forced row with a timeout", with(sound(), fsm.Move("open", "x", "closed").OnlyForced().After(time.Minute)),
		fsm.BadRow, "row 4 (open -x-> closed): a forced row has a timeout",
	},
	{
		"dead end for one origin",
		withState(sound(), fsm.State[string]{Name: "hung", Kind: fsm.Transitional, Manual: "operator"},
			fsm.Move("open", "x", "hung").AlsoFrom("closed"), fsm.Return("hung", "y").Of("closed")),
		fsm.DeadEnd, "state hung: no row leads out for an object that came from open",
	},
	{
		"no timeout for one origin",
		withState(sound(), fsm.State[string]{Name: "hung", Kind: fsm.Transitional},
			fsm.Move("open", "x", "hung").AlsoFrom("closed"), fsm.Return("hung", "y"), fsm.Return("hung", "z").Of("closed").After(time.Minute)),
		fsm.NoDeadline, "state hung: no timeout for an object that came from open, and no Manual",
	},
}
