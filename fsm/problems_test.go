package fsm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func problemsOf(t *testing.T, s spec) []fsm.Problem {
	m, err := fsm.New[none](s)
	require.True(t, m == nil)
	require.ErrorIs(t, err, fsm.ErrInvalid)
	var invalid *fsm.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, s.Name, invalid.Machine)
	return invalid.Problems
}

func TestSoundSpecIsAccepted(t *testing.T) {
	m := mustNew(t, sound())
	require.Empty(t, m.Table().Problems())
}

func TestNewRefuses(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			problems := problemsOf(t, f.spec)
			require.Len(t, problems, 1)
			p := problems[0]
			require.Equal(t, f.code, p.Code)
			require.Equal(t, f.text, p.Text)
			require.Equal(t, f.text, p.String())
			demands := []string{fsm.NoDeadline, fsm.NeedlessManual, fsm.EndlessTimeout}
			require.Equal(t, slices.Contains(demands, f.code), p.Demand)
			requireRow(t, p)
			if p.State != "" {
				require.Contains(t, p.Text, "state "+p.State+":")
			}
		})
	}
}

// Only the first problem is certain: the rows may mean either of the two states.
func TestNewRefusesAStateDeclaredTwice(t *testing.T) {
	problems := problemsOf(t, withState(sound(), fsm.State[string]{Name: "closed"}))
	require.Equal(t, fsm.DuplicateName, problems[0].Code)
	require.Equal(t, `state 4: name "closed" is taken`, problems[0].Text)
}

// A row that is never tried names the shared actors, also if the table does not declare them.
func TestHiddenRowOfAnUndeclaredActor(t *testing.T) {
	problems := problemsOf(t, with(sound(),
		fsm.Move("open", "x", "closed").By("ghost"), fsm.Move("open", "x", "gone").By("ghost", user)))
	require.Len(t, problems, 3)
	require.Equal(t, "row 5 (open -x-> gone): is never tried in open for ghost: row 4 (open -x-> closed) comes first", problems[2].Text)
}

func TestEveryProblemCodeHasAFault(t *testing.T) {
	all := []string{
		fsm.NoName, fsm.BadName, fsm.DuplicateName, fsm.TooLarge, fsm.NoInitial, fsm.UnknownState,
		fsm.UnknownActor, fsm.NoActor, fsm.NoSource, fsm.BadRow, fsm.BadState, fsm.BadGuard, fsm.DuplicateRow,
		fsm.AmbiguousRow, fsm.Unreachable, fsm.DeadEnd, fsm.FinalExit, fsm.NoOrigin, fsm.NeverFits,
		fsm.NoDeadline, fsm.NeedlessManual, fsm.DeadlineFromAbsent, fsm.EndlessTimeout,
	}
	var planted []string
	for _, f := range faults {
		planted = append(planted, f.code)
	}
	slices.Sort(all)
	slices.Sort(planted)
	require.Equal(t, all, slices.Compact(planted))
}

func TestNewReportsAllFaultsAtOnce(t *testing.T) {
	s := withState(sound(), fsm.State[string]{Name: "island"}, fsm.Move("island", "x", "open"))
	s = withState(s, fsm.State[string]{Name: "trap", Kind: fsm.Transitional}, fsm.Move("open", "y", "trap"))
	s = withState(s, fsm.State[string]{Name: "rock", Kind: fsm.Transitional})
	s = withState(s, fsm.State[string]{Name: "raft", Kind: fsm.Transitional}, fsm.Move("raft", "x", "open"))
	s = with(s,
		fsm.Move("open", "close", "closing").By(user),
		fsm.Move("gone", "back", "open"),
		fsm.Move("open", "z", "closed").If(otherGuard),
		fsm.Move("closing", "z", "closed").Of("gone"),
	)
	s.States[0].Manual = "operator"
	s.Actors = append(s.Actors, "")

	var codes []string
	problems := problemsOf(t, s)
	for _, p := range problems {
		codes = append(codes, p.Code)
	}
	require.ElementsMatch(t, []string{
		fsm.Unreachable, fsm.DeadEnd, fsm.NoDeadline, fsm.DuplicateRow, fsm.FinalExit,
		fsm.BadGuard, fsm.NeverFits, fsm.NeedlessManual, fsm.NoName,
		fsm.Unreachable, fsm.DeadEnd, fsm.NoDeadline, // of rock
		fsm.Unreachable, fsm.NoDeadline, // of raft
	}, codes)
	// Errors come before demands.
	demanded := false
	for _, p := range problems {
		demand := p.Code == fsm.NoDeadline || p.Code == fsm.NeedlessManual
		require.Equal(t, demand, p.Demand, p.Code)
		require.True(t, demand || !demanded, p.Code)
		demanded = demand
	}
}

// A misspelt name hides no other fault, and causes no false one: New omits the faults
// that the correct name may remove.
func TestMisspeltNames(t *testing.T) {
	flawed := func(r row) spec {
		s := sound()
		s.States = append(s.States, fsm.State[string]{Name: "island"}, fsm.State[string]{Name: "hung", Kind: fsm.Transitional})
		s.Rows = append(s.Rows, fsm.Move("island", "x", "open"), fsm.Move("open", "hang", "hung"), fsm.Move("hung", "y", "open"), r)
		return s
	}
	island := "state island: no object gets there"
	hung := "state hung: transitional, with neither a timeout nor Manual"
	for name, c := range map[string]struct {
		spec  spec
		texts []string
	}{
		"actor": {flawed(fsm.Move("open", "z", "closed").By("usr")), []string{
			`row 7 (open -z-> closed): names an actor that is not declared: "usr"`, island, hung,
		}},
		"target, which may be any state": {flawed(fsm.Move("open", "z", "clsed")), []string{
			`row 7 (open -z-> clsed): the target is not declared: "clsed"`, hung,
		}},
		"source, which may be any state": {flawed(fsm.Move("opn", "z", "closed")), []string{
			`row 7 (opn -z-> closed): names a state that is not declared: "opn"`, hung,
		}},
		"source of a timeout": {flawed(fsm.Move("hng", "z", "closed").After(time.Minute)), []string{
			`row 7 (hng -z-> closed): names a state that is not declared: "hng"`,
		}},
		"sources of a timeout and of another row": {with(flawed(fsm.Move("hng", "z", "closed").After(time.Minute)), fsm.Move("hng", "w", "closed")), []string{
			`row 7 (hng -z-> closed): names a state that is not declared: "hng"`,
			`row 8 (hng -w-> closed): names a state that is not declared: "hng"`,
		}},
		"exclusion, which leads nowhere": {flawed(fsm.FromAny("z", "closed").Excluding("opn")), []string{
			`row 7 (any -z-> closed): names a state that is not declared: "opn"`, island, hung,
		}},
		"target of a wildcard with sources": {flawed(fsm.FromAny("z", "clsed").AlsoFrom("gone")), []string{
			`row 7 (any -z-> clsed): names sources beside the wildcard`,
			`row 7 (any -z-> clsed): the target is not declared: "clsed"`, hung,
		}},
		"the only way to a state": {edit(func(s *spec) { s.Rows[2].To = "clsed" }), []string{
			`row 2 (closing -shut-> clsed): the target is not declared: "clsed"`,
		}},
		"the only way out of a state": {edit(func(s *spec) { s.Rows[0].From[0] = "opn" }), []string{
			`row 0 (opn -close-> closing): names a state that is not declared: "opn"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.texts, textsOf(problemsOf(t, c.spec)))
		})
	}
}

func TestInvalidErrorHasALineForEachProblem(t *testing.T) {
	s := with(sound(), fsm.Move("gone", "back", "open"))
	s.States[0].Manual = "operator"
	_, err := fsm.New[none](s)
	require.EqualError(t, err, "fsm: invalid table door:"+
		"\n\trow 4 (gone -back-> open): leaves the final state gone without force"+
		"\n\tstate open: Manual on a state that rests")
	require.NotErrorIs(t, err, fsm.ErrNotAllowed)

	_, err = fsm.New[none](spec{})
	require.ErrorContains(t, err, "fsm: invalid table:\n\tmachine: empty name")
	require.EqualError(t, err, (&fsm.InvalidError{Problems: err.(*fsm.InvalidError).Problems}).Error())
}

func TestMustPanicsWithTheProblems(t *testing.T) {
	require.PanicsWithValue(t,
		"fsm: invalid table door:\n\trow 4 (gone -back-> open): leaves the final state gone without force",
		func() { fsm.Must[none](with(sound(), fsm.Move("gone", "back", "open"))) })
	require.NotPanics(t, func() { fsm.Must[none](sound()) })
}

// These specs are close to a fault.
func TestNewAccepts(t *testing.T) {
	for name, s := range map[string]spec{
		"64 actors and no timeout": withActors(edit(func(s *spec) {
			s.Rows[1] = fsm.Return("closing", "stuck")
			s.States[1].Manual = "operator"
		}), 64),
		"the longest name":    edit(func(s *spec) { s.Name = long[1:] }),
		"a declared sweeper":  edit(func(s *spec) { s.Actors = append(s.Actors, fsm.Sweeper) }),
		"ignored in final":    with(sound(), fsm.Ignore("gone", "x")),
		"staying in final":    with(sound(), fsm.Move("gone", "x", "gone")),
		"forced out of final": with(sound(), fsm.Move("gone", "x", "open").OnlyForced()),
		"disjoint actors": with(sound(),
			fsm.Move("open", "x", "closed").By(user), fsm.Move("open", "x", "gone").By(worker)),
		"every row but the last guarded": with(sound(),
			fsm.Move("open", "x", "closed").If(noneGuard), fsm.Move("open", "x", "gone")),
		"every row but the last with an origin": with(sound(),
			fsm.Move("closing", "x", "closed").Of("open"), fsm.Return("closing", "x")),
		"forced before free": with(sound(),
			fsm.Move("open", "x", "closed").OnlyForced(), fsm.Move("open", "x", "gone")),
		"self row with a timeout and a guard":           with(sound(), fsm.Move("closing", "x", "closing").After(time.Second).If(noneGuard)),
		"self row with a timeout, superseding":          with(sound(), fsm.Redo("closing", "x", time.Second)),
		"self row with a timeout, from a state at rest": with(sound(), fsm.Move("open", "x", "open").After(time.Second)),
		"self transition":                               with(sound(), fsm.Move("open", "x", "open")),
		"dead end that is absent":                       withState(sound(), fsm.State[string]{Name: "void", Kind: fsm.Absent}, fsm.Move("open", "x", "void")),
		"an operator instead of a timeout for one origin": withState(sound(),
			fsm.State[string]{Name: "hung", Kind: fsm.Transitional, Manual: "operator"},
			fsm.Move("open", "x", "hung").AlsoFrom("closed"), fsm.Return("hung", "y"), fsm.Return("hung", "z").Of("closed").After(1)),
		"return without origin excluded": edit(func(s *spec) {
			s.Initial = "closing"
			s.Rows[1] = s.Rows[1].Of("open")
			s.Rows = append(s.Rows, fsm.Move("closed", "x", "open"), fsm.Move("closing", "reset", "open").After(1))
		}),
		"target hint": edit(func(s *spec) { s.States[1].Target = new("closed") }),
		"odd names":   with(sound(), fsm.Move("open", "<script> \"end\"; x -> y", "closed")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fsm.New[none](s)
			require.NoError(t, err)
		})
	}
}

// The number of problems does not grow with the square of the rows of a cell.
func TestProblemsGrowWithTheRows(t *testing.T) {
	s := sound()
	for range 600 {
		s.Rows = append(s.Rows, fsm.Move("open", "close", "closing").By(user))
	}
	require.Equal(t, 600, len(problemsOf(t, s)))
}

func textsOf(problems []fsm.Problem) (texts []string) {
	for _, p := range problems {
		texts = append(texts, p.Text)
	}
	return texts
}

func TestProblemsOfEntryStates(t *testing.T) {
	for name, c := range map[string]struct {
		entries string
		texts   []string
	}{
		"initial state not declared": {`"initial": "ghost", "initials": ["A"]`, []string{
			`the initial state is not declared: "ghost"`,
		}},
		"entry state not declared, which may be any state": {`"initial": "A", "initials": ["A", "ghost"]`, []string{
			`an entry state is not declared: "ghost"`,
		}},
		"initial state not among the entry states": {`"initial": "A", "initials": ["B"]`, []string{
			"the initial state is not one of the entry states", "state A: no object gets there",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			table := parsed(t, `{"name": "m", `+c.entries+`, "transitions": [],
				"states": [{"name": "A", "kind": "final"}, {"name": "B", "kind": "final"}]}`)
			require.Equal(t, c.texts, textsOf(table.Problems()))
		})
	}
}

// Rows with an index out of range hide only what cannot be checked.
func TestProblemsOfIndexesOutOfRange(t *testing.T) {
	for name, c := range map[string]struct {
		row   fsm.TableRow
		texts []string
	}{
		"negative source": {fsm.TableRow{From: []int{-1}, To: 0}, []string{
			"row 1 (? -e-> A): names a state that is not declared",
		}},
		"negative target": {fsm.TableRow{From: []int{1}, To: -1, Supersede: true}, []string{
			"row 1 (B -e-> ?): the target is not declared",
		}},
		"negative actor": {fsm.TableRow{From: []int{1}, To: 0, Actors: []int{-1}}, []string{
			"row 1 (B -e-> A): names an actor that is not declared",
			"row 2 (B -e-> A): names an actor that is not declared",
			"row 2 (B -e-> A): is equal to row 1 in B",
		}},
		"negative event, so that rows cannot be compared": {fsm.TableRow{From: []int{1}, Event: -1, To: 0}, []string{
			"row 1 (B -?-> A): the event is not declared",
			"row 2 (B -?-> A): the event is not declared",
		}},
		"unknown Then, so that rows cannot be compared": {fsm.TableRow{From: []int{1}, To: 0, Then: 7}, []string{
			"row 1 (B -e-> A): unknown Then 7",
			"row 2 (B -e-> A): unknown Then 7",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			table := &fsm.Table{
				Name: "m", Actors: []fsm.Actor{user}, Events: []string{"e"},
				States: []fsm.TableState{{Name: "A", Target: -1}, {Name: "B", Target: -1}},
				Rows:   []fsm.TableRow{{From: []int{0}, To: 1}, c.row, c.row},
			}
			if len(c.texts) == 1 {
				table.Rows = table.Rows[:2]
			}
			require.Equal(t, c.texts, textsOf(table.Problems()))
		})
	}
}
