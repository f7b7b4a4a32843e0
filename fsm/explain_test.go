package fsm_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

func TestExplainTellsEveryRowThatLeadsOut(t *testing.T) {
	m := newDisks(t)
	all := []fsm.Actor{user, worker, guest, fsm.Sweeper}
	for _, c := range []struct {
		at   fsm.Status[string]
		want fsm.Explanation
	}{
		{m.At("CREATED"), fsm.Explanation{
			Machine: "disk", State: "CREATED", Origin: "CREATED", Kind: fsm.Stable,
			Rows: []fsm.RowExplanation{
				{Row: 3, Event: "resize", Actors: []fsm.Actor{user}, To: "CREATED", Guard: "room", Err: fsm.ErrGuard},
				{Row: 4, Event: "delete", Actors: []fsm.Actor{user}, To: "DELETING"},
				{Row: 10, Event: "lost", Actors: all, To: "BROKEN"},
			},
		}},
		{status("CREATING", "ABSENT"), fsm.Explanation{
			Machine: "disk", State: "CREATING", Origin: "ABSENT", Kind: fsm.Transitional,
			Rows: []fsm.RowExplanation{
				{Row: 1, Event: "done", Actors: []fsm.Actor{worker}, To: "CREATED"},
				{Row: 2, Event: "failed", Actors: []fsm.Actor{worker, fsm.Sweeper}, To: "ABSENT", Within: time.Minute},
				{Row: 10, Event: "lost", Actors: all, To: "BROKEN"},
			},
		}},
		{status("DELETING", "CREATED"), fsm.Explanation{
			Machine: "disk", State: "DELETING", Origin: "CREATED", Kind: fsm.Transitional, Manual: "the storage team",
			Rows: []fsm.RowExplanation{
				{Row: 5, Event: "done", Actors: []fsm.Actor{worker}, To: "TOBEDELETED"},
				{Row: 6, Event: "done", Actors: []fsm.Actor{worker}, Err: fsm.ErrNotAllowed},
				{Row: 7, Event: "failed", Actors: []fsm.Actor{worker}, To: "CREATED"},
				{Row: 8, Event: "delete", Actors: []fsm.Actor{user}, To: "DELETING"},
				{Row: 10, Event: "lost", Actors: all, To: "BROKEN"},
			},
		}},
		{m.At("DELETED"), fsm.Explanation{
			Machine: "disk", State: "DELETED", Origin: "DELETED", Kind: fsm.Final,
			Rows: []fsm.RowExplanation{{Row: 9, Event: "restore", Actors: []fsm.Actor{user}, To: "CREATED", Forced: true}},
		}},
	} {
		got, err := m.Explain(t.Context(), c.at, nil)
		require.NoError(t, err)
		for i := range got.Rows {
			got.Rows[i].Err = sentinel(t, got.Rows[i].Err)
		}
		require.Empty(t, cmp.Diff(c.want, got, cmpopts.EquateErrors()))
	}
}

func TestExplainGivesTheReasons(t *testing.T) {
	m := newDisks(t)
	x, err := m.Explain(t.Context(), m.At("CREATED"), &disk{})
	require.NoError(t, err)
	require.ErrorIs(t, x.Rows[0].Err, errFull)
	require.Equal(t, 3, detail(t, x.Rows[0].Err).Row)

	x, err = m.Explain(t.Context(), m.At("CREATED"), &disk{free: 1})
	require.NoError(t, err)
	require.NoError(t, x.Rows[0].Err)
}

func TestExplainAsksEveryGuardOnce(t *testing.T) {
	p := &trial{}
	m := trials(t)
	_, err := m.Explain(t.Context(), m.Start(), p)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second", "third"}, p.asked)
}

func TestExplanationReadsAsLines(t *testing.T) {
	m := newDisks(t)
	for want, at := range map[string]fsm.Status[string]{
		"disk in CREATED (stable)\n" +
			"  resize by user -> CREATED: not now: room: no space\n" +
			"  delete by user -> DELETING\n" +
			"  lost by user, worker, guest, sweeper -> BROKEN": m.At("CREATED"),
		"disk in CREATING (transitional, from ABSENT)\n" +
			"  done by worker -> CREATED\n" +
			"  failed by worker, sweeper after 1m0s -> ABSENT\n" +
			"  lost by user, worker, guest, sweeper -> BROKEN": status("CREATING", "ABSENT"),
		"disk in DELETING (transitional, from CREATED): the storage team\n" +
			"  done by worker -> TOBEDELETED\n" +
			"  done by worker: not now: no row for an object of this origin\n" +
			"  failed by worker -> CREATED\n" +
			"  delete by user -> DELETING\n" +
			"  lost by user, worker, guest, sweeper -> BROKEN": status("DELETING", "CREATED"),
		"disk in DELETED (final)\n" +
			"  restore by user by force -> CREATED": m.At("DELETED"),
	} {
		x, err := m.Explain(t.Context(), at, nil)
		require.NoError(t, err)
		require.Equal(t, want, x.String())
	}
	x := sure(mustNew(t, sound()).Explain(t.Context(), fsm.Status[string]{State: "gone", Origin: "gone"}, nil))
	require.Equal(t, "door in gone (final)\n  nothing leads out", x.String())
}

// What an explanation says of a row is what the naive reading of it says.
func TestExplanationMeansTheSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs().Draw(t, "spec")
		m, err := fsm.New[gates](spec)
		require.NoError(t, err)
		n := naive[int, int]{spec: spec}
		p := &gates{open: uint8(rapid.IntRange(0, 15).Draw(t, "open"))}
		n.agrees = agreeing(p)
		for s := range spec.States {
			at := fsm.Status[int]{State: s, Origin: rapid.IntRange(0, len(spec.States)-1).Draw(t, "origin")}
			x, err := m.Explain(context.Background(), at, p)
			require.NoError(t, err)
			k := 0
			for i := range spec.Rows {
				r := &spec.Rows[i]
				if !n.leaves(r, s) {
					continue
				}
				got := x.Rows[k]
				k++
				require.Equal(t, i, got.Row)
				for _, a := range append([]fsm.Actor{fsm.Sweeper, "nobody"}, spec.Actors...) {
					require.Equal(t, n.mayFire(r, a), slices.Contains(got.Actors, a), "row %d by %s", i, a)
				}
				switch {
				case !n.fits(r, at):
					require.ErrorIs(t, got.Err, fsm.ErrNotAllowed)
					require.Empty(t, got.To)
				case n.ask(r) != nil:
					require.ErrorIs(t, got.Err, n.ask(r))
					fallthrough
				default:
					require.Equal(t, n.ask(r) == nil, got.Err == nil)
					require.Equal(t, m.Table().States[n.after(r, at).State].Name, got.To)
				}
			}
			require.Len(t, x.Rows, k)
		}
	})
}
