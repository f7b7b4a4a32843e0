package fsmtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/suitetest"
)

const (
	user   fsm.Actor = "user"
	worker fsm.Actor = "worker"
)

// disk is the payload of disks.
type disk struct{ used, old bool }

func asks(name string, agrees func(*disk) bool) fsm.Guard[disk] {
	return fsm.When(name, func(_ context.Context, _, d *disk) error {
		if d == nil || !agrees(d) {
			return errors.New("not " + name)
		}
		return nil
	})
}

// newDisks returns a machine with a row of every form.
func newDisks() *fsm.Machine[string, string, disk] {
	return fsm.Must[disk](fsm.Spec[string, string]{
		Name: "disk", Initial: "absent", Actors: []fsm.Actor{user, worker},
		States: []fsm.State[string]{
			{Name: "absent", Kind: fsm.Absent},
			{Name: "creating", Kind: fsm.Transitional},
			{Name: "created"},
			{Name: "trash"},
			{Name: "deleting", Kind: fsm.Transitional, Manual: "the storage team"},
			{Name: "gone", Kind: fsm.Final},
			{Name: "broken", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			/* 0 */ fsm.Move("absent", "create", "creating").By(user),
			/* 1 */ fsm.Move("creating", "done", "created").By(worker),
			/* 2 */ fsm.Return("creating", "failed").By(worker).After(time.Minute),
			/* 3 */ fsm.Move("created", "resize", "created").By(user).If(asks("unused", func(d *disk) bool { return !d.used })),
			/* 4 */ fsm.Move("created", "delete", "deleting").By(user).If(asks("unused", func(d *disk) bool { return !d.used })),
			/* 5 */ fsm.Move("trash", "delete", "gone").By(user).If(asks("old", func(d *disk) bool { return d.old })),
			/* 6 */ fsm.Move("trash", "delete", "deleting").By(user),
			/* 7 */ fsm.Move("deleting", "done", "trash").Of("created").By(worker),
			/* 8 */ fsm.Move("deleting", "done", "gone").Of("trash").By(worker),
			/* 9 */ fsm.Return("deleting", "failed").By(worker),
			/* 10 */ fsm.Ignore("deleting", "delete").By(user),
			/* 11 */ fsm.Move("gone", "restore", "created").By(user).OnlyForced(),
			/* 12 */ fsm.FromAny("lost", "broken"),
			/* 13 */ fsm.Move("broken", "repair", "created"),
		),
	})
}

var disks = newDisks()

// bound is the machine of a document without guards.
func bound(t testing.TB, document string) *fsm.Machine[string, string, disk] {
	t.Helper()
	table, err := fsm.ParseTable([]byte(document))
	require.NoError(t, err)
	m, err := fsm.Bind[disk, string, string](table)
	require.NoError(t, err)
	return m
}

// record runs a test that may fail, and returns its output.
func record(t *testing.T, run func(t testing.TB)) *suitetest.Recorder {
	t.Helper()
	return suitetest.Record(t, run)
}

// fails requires that a test fails with all these messages.
func fails(t *testing.T, run func(t testing.TB), messages ...string) {
	t.Helper()
	r := record(t, run)
	require.True(t, r.Failed(), "the test passes:\n%s", r.Text())
	for _, text := range messages {
		require.Contains(t, r.Text(), text)
	}
}

// passes requires that a test passes with all these messages.
func passes(t *testing.T, run func(t testing.TB), messages ...string) {
	t.Helper()
	r := record(t, run)
	require.False(t, r.Failed(), r.Text())
	for _, text := range messages {
		require.Contains(t, r.Text(), text)
	}
}

// switches are the payload of random machines.
type switches struct{ on [3]bool }

var switchNames = [3]string{"p", "q", "r"}

// drawMachine draws a sound machine: a tree that reaches every state, a way out of each
// state, and those of some random rows that New accepts.
func drawMachine(t *rapid.T) *fsm.Machine[string, string, switches] {
	spec := fsm.Spec[string, string]{Name: "drawn", Initial: "s0", Actors: []fsm.Actor{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "actors")]}
	n := rapid.IntRange(2, 6).Draw(t, "states")
	kinds := rapid.SampledFrom([]fsm.Kind{fsm.Stable, fsm.Stable, fsm.Transitional, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent})
	name := func(i int) string { return fmt.Sprint("s", i) }
	for i := range n {
		s := fsm.State[string]{Name: name(i), Kind: kinds.Draw(t, "kind")}
		if s.Kind == fsm.Transitional {
			s.Manual = "an operator"
		}
		spec.States = append(spec.States, s)
	}
	add := func(from, event, to int) {
		r := fsm.Move(name(from), fmt.Sprint("e", event), name(to))
		r.Forced = spec.States[from].Kind == fsm.Final
		spec.Rows = append(spec.Rows, r)
	}
	for i := 1; i < n; i++ {
		add(rapid.IntRange(0, i-1).Draw(t, "parent"), i, i)
	}
	for i := range n {
		add(i, n+i, (i+rapid.IntRange(1, n-1).Draw(t, "exit"))%n)
	}
	state := rapid.Map(rapid.IntRange(0, n-1), name)
	for range rapid.IntRange(0, 10).Draw(t, "rows") {
		r := fsm.Row[string, string]{
			From: []string{state.Draw(t, "from")}, Event: fmt.Sprint("e", rapid.IntRange(0, 4).Draw(t, "event")),
			To: state.Draw(t, "to"), Then: rapid.SampledFrom([]fsm.Then{fsm.ThenMove, fsm.ThenMove, fsm.ThenReturn, fsm.ThenIgnore}).Draw(t, "then"),
			Forced: rapid.IntRange(0, 5).Draw(t, "forced") == 0, Supersede: rapid.IntRange(0, 3).Draw(t, "supersedes") == 0,
			Doc: rapid.SampledFrom([]string{"", "why"}).Draw(t, "doc"),
		}
		if rapid.Bool().Draw(t, "guarded") {
			i := rapid.IntRange(0, 2).Draw(t, "guard")
			r.Guard = fsm.When(switchNames[i], func(_ context.Context, _, s *switches) error {
				if s == nil || !s.on[i] {
					return errors.New("off")
				}
				return nil
			})
		}
		if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			r.Origin = []string{state.Draw(t, "origin")}
		}
		if rapid.Bool().Draw(t, "by") {
			r.Actors = []fsm.Actor{rapid.SampledFrom(spec.Actors).Draw(t, "actor")}
		}
		grown := spec
		grown.Rows = slices.Insert(slices.Clone(spec.Rows), rapid.IntRange(0, len(spec.Rows)).Draw(t, "place"), r)
		if _, err := fsm.New[switches](grown); err == nil {
			spec = grown
		}
	}
	return fsm.Must[switches](spec)
}
