package scripttest_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
)

var note = fsm.Must[int](fsm.Spec[string, string]{
	Name: "note", Initial: "open", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "open"}, {Name: "closed", Kind: fsm.Final}},
	Rows:   fsm.Rows(fsm.Move("open", "close", "closed").By("user")),
})

func TestRun(t *testing.T) {
	scripttest.Run(t, "testdata/*.script", func(t *testing.T) scripttest.Harness {
		start := time.Now()
		var trace strings.Builder
		var notes *lifecycle.Manager[string, string, int]
		process := &scripttest.Store{MemoryStore: lifecycle.NewMemoryStore(), Committed: func(c *lifecycle.Commit) {
			trace.WriteString("committed " + c.Changes[0].To.ID + " at +" + time.Since(start).String())
		}}
		notes = lifecycle.Must(note, process, nil)
		result := func(rec lifecycle.Record[string, int], err error) string {
			if err != nil {
				return scripttest.Error(err)
			}
			return rec.State + " " + strconv.Itoa(rec.Payload)
		}
		return scripttest.Harness{
			Commands: map[string]scripttest.Command{
				"add": func(t *testing.T, a *scripttest.Args) string {
					return result(notes.Add(t.Context(), a.Word(), "open", "user", a.Number("n"), nil))
				},
				"close": func(t *testing.T, a *scripttest.Args) string {
					return result(notes.Fire(t.Context(), a.Word(), "close", "user", nil))
				},
				"get": func(t *testing.T, a *scripttest.Args) string { return result(notes.Get(t.Context(), a.Word())) },
				"die": func(_ *testing.T, a *scripttest.Args) string { process.Die(a.Number("after")); return "" },
				"arguments": func(_ *testing.T, a *scripttest.Args) string {
					flag, d := a.Flag("flag"), a.Duration("for")
					return strings.Join([]string{
						a.Command(), strconv.FormatBool(flag), d.String(), a.Word(), strings.Join(a.Words(), "+"),
						a.Value("list"), a.Value("missing"), strconv.Itoa(len(a.Lines())),
					}, "|")
				},
			},
			Trace: func() string { defer trace.Reset(); return trace.String() },
			Close: func(t *testing.T) { require.NotNil(t, notes) },
		}
	})
}

func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store, broken := t.Context(), scripttest.NewStore(), errors.New("broken")
		notes := lifecycle.Must(note, store, nil)
		add := func(id string) error {
			_, err := notes.Add(ctx, id, "open", "user", 0, nil)
			return err
		}
		read := func(id string) error {
			_, err := notes.Get(ctx, id)
			return err
		}
		adding := scripttest.Call{Method: "Commit", Machine: "note", ID: "a", State: "open"}
		ran := store.OnceBefore(adding, func() { require.NoError(t, add("a1")) })
		require.NoError(t, add("b"))
		require.False(t, ran())
		require.ErrorIs(t, add("a1"), lifecycle.ErrExists)
		require.True(t, ran())

		store.Refuse(adding, broken)
		require.ErrorIs(t, add("a2"), broken)
		require.ErrorIs(t, read("a2"), lifecycle.ErrNotFound)
		store.Before(nil)

		ran = store.OnceAfter(scripttest.Call{Method: "Get", State: "open"}, func() { store.Outage(time.Second) })
		require.ErrorIs(t, read("a3"), lifecycle.ErrNotFound)
		require.False(t, ran())
		require.NoError(t, read("a1"))
		require.ErrorIs(t, read("a1"), lifecycle.ErrUnavailable)
		time.Sleep(time.Second)
		require.NoError(t, read("a1"))

		store.After(func(c scripttest.Call) error {
			if c.Method == "List" || c.Method == "History" {
				return broken
			}
			return nil
		})
		_, err := notes.List(ctx, lifecycle.Select[string]{})
		require.ErrorIs(t, err, broken)
		_, err = notes.History(ctx, "b", 0, 0)
		require.ErrorIs(t, err, broken)
	})
}
