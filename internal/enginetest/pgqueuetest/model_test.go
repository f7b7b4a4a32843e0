package pgqueuetest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/queue/pgqueue"
)

// modeled is an action of the model.
type modeled struct {
	id      int64
	keys    []string
	fails   int // attempts that are to fail
	running bool
}

// model is the naive queue: one list. An action runs if no action before it shares a key.
type model struct{ list []*modeled }

// start marks the actions that start now, and returns their ids.
func (m *model) start() (ids []int64) {
	taken := map[string]bool{}
	for _, a := range m.list {
		first := !slices.ContainsFunc(a.keys, func(k string) bool { return taken[k] })
		for _, k := range a.keys {
			taken[k] = true
		}
		if first && !a.running {
			a.running = true
			ids = append(ids, a.id)
		}
	}
	return ids
}

// TestModel compares two workers with the model: after each operation exactly the actions
// start that the model starts.
func TestModel(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	gates := make(chan map[int64]chan error, 1) // by id; the channel is the lock
	gates <- map[int64]chan error{}
	gate := func(id int64) chan error {
		all := <-gates
		defer func() { gates <- all }()
		if all[id] == nil {
			all[id] = make(chan error, 1)
		}
		return all[id]
	}
	handlers := handler(func(_ context.Context, task *pgqueue.Task) error { return <-gate(task.ID) })
	for range 2 {
		run(t, db, handlers, &pgqueue.Config{Observer: e.observer(), MaxRunning: 100, Poll: 50 * time.Millisecond, Lease: time.Minute})
	}
	operations := 0
	rapid.Check(t, func(rt *rapid.T) {
		var m model
		settled := func() {
			want := m.start()
			var got []int64
			for range want {
				got = append(got, next(t, e.started).ID)
			}
			require.ElementsMatch(rt, want, got)
			require.Empty(rt, e.started)
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				var want, got []string
				for _, i := range inspect(t, db, key) {
					got = append(got, strconv.FormatInt(i.ID, 10)+i.State)
				}
				for _, a := range m.list {
					if slices.Contains(a.keys, key) {
						want = append(want, strconv.FormatInt(a.id, 10)+map[bool]string{true: "running", false: "waiting"}[a.running])
					}
				}
				require.Equal(rt, want, got)
			}
		}
		finish := func(a *modeled) {
			for ; a.fails > 0; a.fails-- {
				gate(a.id) <- errBad
				require.Equal(rt, a.id, next(t, e.retried).ID)
				require.Equal(rt, a.id, next(t, e.started).ID, "a retry is not overtaken")
			}
			gate(a.id) <- nil
			require.Equal(rt, a.id, next(t, e.finished).ID)
			m.list = slices.DeleteFunc(m.list, func(o *modeled) bool { return o == a })
			settled()
		}
		pick := func(rt *rapid.T, running bool) *modeled {
			list := slices.DeleteFunc(slices.Clone(m.list), func(a *modeled) bool { return a.running != running })
			if len(list) == 0 {
				rt.Skip("there is none")
			}
			return rapid.SampledFrom(list).Draw(rt, "action")
		}
		add := func(rt *rapid.T) {
			keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 3, rapid.ID).Draw(rt, "keys")
			a := &modeled{keys: keys, fails: rapid.IntRange(0, 2).Draw(rt, "fails") / 2}
			a.id = enqueue(t, db, pgqueue.Action{Keys: keys, Retries: pgqueue.Retries{Attempts: 2, Delay: time.Millisecond}})
			m.list = append(m.list, a)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue":       func(rt *rapid.T) { add(rt); settled(); operations++ },
			"enqueue again": func(rt *rapid.T) { add(rt); settled(); operations++ },
			"rollback": func(rt *rapid.T) {
				tx, err := db.Begin()
				require.NoError(rt, err)
				enqueue(t, tx, pgqueue.Action{Keys: []string{"c", "a"}})
				require.NoError(rt, tx.Rollback())
			},
			"finish": func(rt *rapid.T) { finish(pick(rt, true)); operations++ },
			"finish all": func(rt *rapid.T) { // a worker ends several at once
				ends := map[int64]bool{}
				for _, a := range m.list {
					if a.running && a.fails == 0 {
						ends[a.id] = true
						gate(a.id) <- nil
					}
				}
				for range ends {
					require.True(rt, ends[next(t, e.finished).ID])
				}
				m.list = slices.DeleteFunc(m.list, func(a *modeled) bool { return ends[a.id] })
				settled()
				operations++
			},
			"cancel": func(rt *rapid.T) {
				a := pick(rt, false)
				removed, err := pgqueue.Cancel(t.Context(), db, a.id)
				require.NoError(rt, err)
				require.True(rt, removed)
				m.list = slices.DeleteFunc(m.list, func(o *modeled) bool { return o == a })
				settled()
				operations++
			},
		})
		for len(m.list) > 0 {
			finish(m.list[0])
		}
		empty(t, db)
	})
	t.Logf("%d operations as in the model", operations)
}
