package conform

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func TestConformingMachine(t *testing.T) {
	require.Empty(t, Compare(tableOf(t, boats()), boatDocument(), parsed(t, boatMapping)))
	CheckDocument(t, tableOf(t, boats()), boatDocument(), parsed(t, boatMapping))
}

// Machines that package fsm accepts and that are not the document's.
func TestMutatedMachines(t *testing.T) {
	row := func(s *spec, event string) *fsm.Row[string, string] {
		i := slices.IndexFunc(s.Rows, func(r fsm.Row[string, string]) bool { return r.Event == event })
		return &s.Rows[i]
	}
	for _, c := range []struct {
		change string
		mutate func(*spec)
		want   []string // codes
		text   string   // in one of the findings
	}{
		{"row removed", func(s *spec) {
			s.Rows = slices.DeleteFunc(s.Rows, func(r fsm.Row[string, string]) bool { return r.Event == "return" })
		}, []string{Missing}, "document row at sea --return by captain--> moored: the machine has no row at sea --return by skipper--> moored"},
		{"addition removed", func(s *spec) {
			s.Rows = slices.DeleteFunc(s.Rows, func(r fsm.Row[string, string]) bool { return r.Event == "raise" })
		}, []string{Stale}, "addition sunk --raise by skipper--> leaking [forced] is not in the machine"},
		{"row added", func(s *spec) {
			s.Rows = append(s.Rows, fsm.Move("dry", "sell", "none").By("skipper"))
		}, []string{Unmapped}, "machine row dry --sell by skipper--> none is neither"},
		{"row retargeted", func(s *spec) { row(s, "return").To = "dry" }, []string{Missing, Unmapped}, "at sea --return by skipper--> dry"},
		{"addition retargeted", func(s *spec) { row(s, "raise").To = "dry" }, []string{Stale, Unmapped}, "sunk --raise by skipper--> dry [forced]"},
		{"another source", func(s *spec) { row(s, "lift").From = []string{"at sea"} }, []string{Missing, Unmapped}, "at sea --lift by anyone--> dry"},
		{"one more source", func(s *spec) { *row(s, "lift") = row(s, "lift").AlsoFrom("leaking") }, []string{Unmapped}, "leaking --lift"},
		{"another actor", func(s *spec) { *row(s, "return") = row(s, "return").By("crew") }, []string{Missing, Unmapped}, "at sea --return by crew--> moored"},
		{"one more actor", func(s *spec) { *row(s, "return") = row(s, "return").By("skipper", "crew") }, []string{Unmapped}, "at sea --return by crew--> moored"},
		{"an actor less", func(s *spec) { *row(s, "leave") = row(s, "leave").By("crew") }, []string{Missing}, "moored --leave by skipper--> leaving if rested"},
		{"any actor", func(s *spec) { *row(s, "return") = row(s, "return").By() }, []string{Missing, Unmapped}, "at sea --return by anyone--> moored"},
		{"another event", func(s *spec) { row(s, "return").Event = "come back" }, []string{Missing, Unmapped}, "--come back by"},
		{"guard dropped", func(s *spec) { row(s, "leave").Guard = nil }, []string{Missing, Missing, Unmapped, Unmapped}, "moored --leave by crew--> leaving if rested"},
		{"guard added", func(s *spec) { row(s, "return").Guard = rested }, []string{Missing, Unmapped}, "moored if rested"},
		{"forced", func(s *spec) { row(s, "return").Forced = true }, []string{Missing, Unmapped}, "moored [forced]"},
		{"not superseding", func(s *spec) {
			for i := range s.Rows {
				s.Rows[i].Supersede = false
			}
		}, []string{Missing, Unmapped}, "leaving [supersedes]"},
		{
			"ignored", func(s *spec) {
				*row(s, "seen leaking") = fsm.Ignore("at sea", "seen leaking").By("observer").Note("seen")
			},
			[]string{Stale, Unmapped},
			"at sea --seen leaking by observer--> at sea [ignored]",
		},
		{
			"a move for a return", func(s *spec) { *row(s, "cleaned") = fsm.Move("cleaning", "cleaned", "moored").By("crew") },
			[]string{Missing, Missing, Unmapped},
			"cleaning --cleaned by crew--> dry [return]",
		},
		{"origin dropped", func(s *spec) {
			i := slices.IndexFunc(s.Rows, func(r fsm.Row[string, string]) bool { return len(r.Origin) > 0 })
			s.Rows[i].Origin = nil
			s.Rows = slices.Delete(s.Rows, i+1, i+2)
		}, []string{Missing, Missing, Unmapped}, "[origin moored]"},
		{"origins swapped", func(s *spec) {
			i := slices.IndexFunc(s.Rows, func(r fsm.Row[string, string]) bool { return len(r.Origin) > 0 })
			s.Rows[i].Origin, s.Rows[i+1].Origin = s.Rows[i+1].Origin, s.Rows[i].Origin
		}, []string{Missing, Missing, Unmapped, Unmapped}, "at sea [origin dry]"},
		{"kind changed", func(s *spec) { s.States[6].Kind = fsm.Stable }, []string{Differs}, "state leaking: the machine has stable instead of failed"},
		{"state added", func(s *spec) {
			s.States = append(s.States, fsm.State[string]{Name: "sold", Kind: fsm.Final})
			s.Rows = append(s.Rows, fsm.Move("dry", "sell", "sold").By("skipper"))
		}, []string{Unmapped, Unmapped}, "state sold (final) is not in the document"},
		{"state removed", func(s *spec) {
			s.States = slices.DeleteFunc(s.States, func(st fsm.State[string]) bool { return st.Name == "sunk" })
			s.Rows = slices.DeleteFunc(s.Rows, func(r fsm.Row[string, string]) bool { return r.Event == "sink" || r.Event == "raise" })
		}, []string{Missing, Missing, Stale}, "state sunk (final) is not in the machine"},
		{
			"initial state", func(s *spec) {
				s.Initial = "moored"
				s.Rows = append(s.Rows, fsm.Move("moored", "sell", "none").By("skipper"))
			},
			[]string{Differs, Unmapped},
			`initial state: the machine has ["moored"] instead of ["none"]`,
		},
		{"target", func(s *spec) { s.States[4].Target = nil }, []string{Differs}, "state leaving: the machine does not say that it is heading for at sea"},
		{
			"forbidden", func(s *spec) { s.Rows = append(s.Rows, fsm.Move("sunk", "clean", "leaking").By("crew").OnlyForced()) },
			[]string{Forbidden, Unmapped},
			"the document forbids start cleaning in sunk",
		},
		{"addition without Doc", func(s *spec) { row(s, "raise").Doc = "" }, []string{Undescribed}, "sunk --raise"},
		{"text without Doc", func(s *spec) { row(s, "repair").Doc = "" }, []string{Undescribed}, "leaking --repair"},
		{"no deadline", func(s *spec) {
			s.Actors = append(s.Actors, fsm.Sweeper)
			*row(s, "late") = row(s, "late").By(fsm.Sweeper).After(0)
			s.States[3].Manual, s.States[4].Manual = "somebody looks", "somebody looks"
		}, []string{NoDeadline, NoDeadline, NoDeadline, NoDeadline}, "--late by sweeper"},
	} {
		t.Run(c.change, func(t *testing.T) {
			s := boats()
			c.mutate(&s)
			var codes, texts []string
			for _, f := range Compare(tableOf(t, s), boatDocument(), parsed(t, boatMapping)) {
				codes = append(codes, f.Code)
				texts = append(texts, f.Text)
			}
			slices.Sort(codes)
			require.Equal(t, c.want, codes, "%q", texts)
			require.Contains(t, strings.Join(texts, "\n"), c.text)
			require.Len(t, record(func(r testing.TB) {
				CheckDocument(r, tableOf(t, s), boatDocument(), parsed(t, boatMapping))
			}), len(codes))
		})
	}
}

// Mappings that say too little, too much or nothing.
func TestMappingsThatLie(t *testing.T) {
	for _, c := range []struct {
		fault    string
		old, new string
		want     []string
		text     string
	}{
		{"actor not renamed", "    captain = skipper\n", "", []string{
			Missing, Missing, Missing, Missing, Unmapped, Unmapped, Unmapped, Unmapped,
		}, "the machine has no row none --launch by captain--> moored"},
		{"stale actor", "    captain = skipper\n", "    captain = skipper\n    cook = crew\n", []string{Stale}, "rename cook = crew changes no row"},
		{"stale event", "    start cleaning = clean\n", "    start cleaning = clean\n    paint = clean\n", []string{Stale}, "rename paint = clean changes no row"},
		{"needless event", "    start cleaning = clean\n", "    start cleaning = clean\n    leave = leave\n", []string{Stale}, "rename leave = leave"},
		{"actor without reason", "actors: a captain commands several", "actors:", []string{NoReason}, "rename captain = skipper: no reason"},
		{"event without reason", "events: the document's name is\na sentence", "events:", []string{NoReason}, "rename start cleaning = clean: no reason"},
		{"state without reason", "states: a boat that is not there", "states:", []string{NoReason}, "state none (absent): no reason"},
		{"stale state", "    absent stable = none absent\n", "    absent stable = none absent\n    ashore stable = dry stable\n", []string{Stale}, "state ashore (stable)"},
		{"state of another kind", "    absent stable = none absent\n", "    absent stable = none absent\n    dry failed = dry stable\n", []string{Stale}, "state dry (failed) is not in the document"},
		{"needless state", "    absent stable = none absent\n", "    absent stable = none absent\n    dry stable = dry stable\n", []string{Stale}, "state dry: the entry says that nothing differs"},
		{"state twice", "    absent stable = none absent\n", "    absent stable = none absent\n    absent stable = none absent\n", []string{Stale}, "mapped twice"},
		{"added state that is not there", "    absent stable = none absent\n", "    absent stable = none absent\n    = sold final\n", []string{Missing}, "state sold (final) is not in the machine"},
		{"rows without reason", "rows: cleaning ends with it", "rows:", []string{NoReason}, "document row cleaning --leave by captain--> leaving"},
		{"stale row", "rows: cleaning ends with it\n", "rows: cleaning ends with it\n    dry --paint by crew--> dry\n        = dry --clean by crew--> cleaning\n", []string{Stale}, "dry --paint by crew--> dry is not in the document"},
		{"row twice", "rows: cleaning ends with it\n", "rows: cleaning ends with it\n    cleaning --leave by captain--> leaving\n        = cleaning --leave by skipper--> leaving [supersedes]\n", []string{Stale}, "mapped twice"},
		{"row that nothing represents", "leaving [supersedes]\n", "dry [supersedes]\n", []string{Missing, Unmapped}, "the machine has no row cleaning --leave by skipper--> dry [supersedes]"},
		{"addition without reason", "prose: the text", "prose:", []string{NoReason}, "addition leaking --repair by crew--> moored: no reason"},
		{"stale addition", "    leaving --late by sweeper--> origin\n", "    leaving --late by sweeper--> origin\n    dry --late by sweeper--> origin\n", []string{Stale}, "addition dry --late by sweeper--> origin is not in the machine"},
		{"addition twice", "    leaving --late by sweeper--> origin\n", "    leaving --late by sweeper--> origin\n    leaving --late by sweeper--> moored [return]\n", []string{Stale}, "listed twice"},
		{"addition that the document has", "additions: seen from outside, and by a crane\n", "additions: seen from outside, and by a crane\n    leaking --sink by crew--> sunk\n", []string{NotOurs, Stale, Undescribed}, "represents a row of the document"},
		{"addition of the document's actor", "prose: the text", "additions: the text", []string{NotOurs}, "leaking --repair by crew--> moored is neither forced nor by sweeper or observer"},
		{"addition forgotten", "    leaving --late by sweeper--> origin\n", "", []string{Unmapped, Unmapped}, "leaving --late by sweeper--> moored [return]"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			require.Contains(t, boatMapping, c.old)
			var codes, texts []string
			for _, f := range Compare(tableOf(t, boats()), boatDocument(), parsed(t, strings.Replace(boatMapping, c.old, c.new, 1))) {
				codes = append(codes, f.Code)
				texts = append(texts, f.Text)
			}
			slices.Sort(codes)
			require.Equal(t, c.want, codes, "%s", strings.Join(texts, "\n"))
			require.Contains(t, strings.Join(texts, "\n"), c.text)
		})
	}
}

func TestAnEntryThatChangesNothingNeedsNoReason(t *testing.T) {
	m := parsed(t, boatMapping+"\nrows:\n    leaking --sink by crew--> sunk\n        = leaking --sink by crew--> sunk\n")
	require.Empty(t, Compare(tableOf(t, boats()), boatDocument(), m))
}

func TestARowMayBeRepresentedBySeveral(t *testing.T) {
	s := boats()
	s.Rows = append(s.Rows, fsm.Move("dry", "sold", "none").By("crew"), fsm.Move("dry", "given away", "none").By("crew"))
	d := boatDocument()
	d.Rows = append(d.Rows, Rows("dry --gone by crew--> absent")...)
	m := parsed(t, boatMapping+`
rows: it matters for the books
    dry --gone by crew--> absent
        = dry --sold by crew--> none
        = dry --given away by crew--> none
`)
	require.Empty(t, Compare(tableOf(t, s), d, m))
}

func TestEveryMutantIsNoticed(t *testing.T) {
	table := tableOf(t, boats())
	compare := func(m *fsm.Table) []Finding { return Compare(m, boatDocument(), parsed(t, boatMapping)) }
	require.Empty(t, unnoticed(table, compare))

	blind := unnoticed(table, func(*fsm.Table) []Finding { return nil })
	require.Greater(t, len(blind), 300)
	for _, change := range []string{
		"state leaking is stable", "initial state dry", "row 0, removed", "row 3, leads to dry", "row 1, an actor is named",
		"row 9, force", "row 11, never becomes due", "one more state", "one more row from sunk",
	} {
		require.Contains(t, blind, change)
	}
	deaf := unnoticed(table, func(m *fsm.Table) []Finding {
		return slices.DeleteFunc(compare(m), func(f Finding) bool { return f.Code == NoDeadline })
	})
	require.Equal(t, []string{"row 11, never becomes due"}, deaf)
}

func TestMutantsLeaveTheTableAlone(t *testing.T) {
	table := tableOf(t, boats())
	for range mutants(table) {
	}
	require.Equal(t, tableOf(t, boats()).Rows, table.Rows)
	require.Equal(t, tableOf(t, boats()).States, table.States)
}

func TestAMachineThatIsItsDocument(t *testing.T) {
	lamp := fsm.Must[struct{}](spec{
		Name: "lamp", Initial: "off", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "off"}, {Name: "warming", Kind: fsm.Transitional}, {Name: "on"}},
		Rows: fsm.Rows(
			fsm.Move("off", "switch", "warming").By("user"),
			fsm.Move("warming", "warm", "on").After(time.Minute),
			fsm.Move("on", "switch", "off").By("user"),
		),
	})
	d := &Document{
		Name: "lamps", Initial: "off", States: []State{{Name: "off"}, {Name: "warming", Kind: fsm.Transitional}, {Name: "on"}},
		Rows: Rows("off --switch by user--> warming", "warming --warm by sweeper--> on", "on --switch by user--> off"),
	}
	CheckDocument(t, lamp.Table(), d, nil)
	d.Rows = d.Rows[:2]
	require.Len(t, record(func(r testing.TB) { CheckDocument(r, lamp.Table(), d, nil) }), 1)
}
