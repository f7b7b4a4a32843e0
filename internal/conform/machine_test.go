package conform

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// A small machine with a row of every form, its document, and the mapping
// between them.

type (
	spec    = fsm.Spec[string, string]
	machine = fsm.Machine[string, string, struct{}]
)

var rested = fsm.When("rested", func(context.Context, *struct{}, *struct{}) error { return nil })

func boats() spec {
	return spec{
		Name: "boat", Initial: "none", Actors: []fsm.Actor{"skipper", "crew", "observer"},
		States: []fsm.State[string]{
			{Name: "none", Kind: fsm.Absent},
			{Name: "moored"},
			{Name: "dry"},
			{Name: "cleaning", Kind: fsm.Transitional},
			{Name: "leaving", Kind: fsm.Transitional, Target: new("at sea")},
			{Name: "at sea"},
			{Name: "leaking", Kind: fsm.Failed},
			{Name: "sunk", Kind: fsm.Final},
		},
		Rows: fsm.Rows(
			fsm.Move("none", "launch", "moored").By("skipper"),
			fsm.Move("moored", "lift", "dry"),
			fsm.Move("moored", "clean", "cleaning").AlsoFrom("dry").By("crew"),
			fsm.Return("cleaning", "cleaned").By("crew"),
			fsm.Move("moored", "leave", "leaving").By("skipper", "crew").If(rested),
			fsm.Move("cleaning", "leave", "leaving").By("skipper").Superseding(),
			fsm.Move("leaving", "left", "at sea").Of("moored").By("crew"),
			fsm.Move("leaving", "left", "leaking").Of("dry").By("crew"),
			fsm.Move("at sea", "return", "moored").By("skipper"),
			fsm.Ignore("at sea", "launch").By("skipper"),
			fsm.Move("leaking", "sink", "sunk").By("crew"),

			fsm.Return("cleaning", "late").AlsoFrom("leaving").After(time.Hour).Note("nobody works at night"),
			fsm.Move("at sea", "seen leaking", "leaking").By("observer").Note("reported by others"),
			fsm.Move("sunk", "raise", "leaking").By("skipper").OnlyForced().Note("by a crane"),
			fsm.Move("leaking", "repair", "moored").By("crew").Note("the text says so"),
		),
	}
}

func boatDocument() *Document {
	return &Document{
		Name: "boats", Initial: "absent",
		States: []State{
			{Name: "absent", Kind: fsm.Stable},
			{Name: "moored"},
			{Name: "dry"},
			{Name: "cleaning", Kind: fsm.Transitional},
			{Name: "leaving", Kind: fsm.Transitional, Target: "at sea"},
			{Name: "at sea"},
			{Name: "leaking", Kind: fsm.Failed},
			{Name: "sunk", Kind: fsm.Final},
		},
		Rows: Rows(
			"absent --launch by captain--> moored",
			"moored --lift by anyone--> dry",
			"moored --start cleaning by crew--> cleaning",
			"dry --start cleaning by crew--> cleaning",
			"cleaning --cleaned by crew--> moored if it was moored",
			"cleaning --cleaned by crew--> dry if it was dry",
			"moored --leave by captain--> leaving if rested",
			"moored --leave by crew--> leaving if rested",
			"cleaning --leave by captain--> leaving",
			"leaving --left by crew--> at sea if it was moored",
			"leaving --left by crew--> leaking if it was dry",
			"at sea --return by captain--> moored",
			"at sea --launch by captain--> at sea [ignored]",
			"leaking --sink by crew--> sunk",
		),
		Illegal: [][2]string{{"sunk", "start cleaning"}},
	}
}

const boatMapping = `
# The boats of the document, and ours.

actors: a captain commands several
    captain = skipper

events: the document's name is
a sentence
    start cleaning = clean

states: a boat that is not there
    absent stable = none absent

rows: back to where it was
    cleaning --cleaned by crew--> moored if it was moored
        = cleaning --cleaned by crew--> moored [return]
    cleaning --cleaned by crew--> dry if it was dry
        = cleaning --cleaned by crew--> dry [return]

rows: the origin knows
    leaving --left by crew--> at sea if it was moored
        = leaving --left by crew--> at sea [origin moored]
    leaving --left by crew--> leaking if it was dry
        = leaving --left by crew--> leaking [origin dry]

rows: cleaning ends with it
    cleaning --leave by captain--> leaving
        = cleaning --leave by skipper--> leaving [supersedes]

additions: nobody works at night
    cleaning --late by sweeper--> moored [return]
    cleaning --late by sweeper--> dry [return]
    leaving --late by sweeper--> origin

additions: seen from outside, and by a crane
    at sea --seen leaking by observer--> leaking
    sunk --raise by skipper--> leaking [forced]

prose: the text
    leaking --repair by crew--> moored
`

func parsed(t testing.TB, text string) *Mapping {
	t.Helper()
	m, err := ParseMapping(text)
	require.NoError(t, err)
	return m
}

func tableOf(t testing.TB, s spec) *fsm.Table {
	t.Helper()
	m, err := fsm.New[struct{}](s)
	require.NoError(t, err)
	return m.Table()
}

// recorder is a testing.TB that keeps what a test would have reported.
type recorder struct {
	testing.TB
	lines []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// fatal is what Fatal panics with, to end the function under test.
type fatal struct{}

func (r *recorder) Fatal(args ...any) {
	r.lines = append(r.lines, fmt.Sprint(args...))
	panic(fatal{})
}

// record runs a check and returns what it reported.
func record(check func(t testing.TB)) []string {
	r := &recorder{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(fatal{}) {
				panic(p)
			}
		}()
		check(r)
	}()
	return r.lines
}
