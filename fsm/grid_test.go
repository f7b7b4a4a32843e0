package fsm_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// bulky is a state of 16 KB: machines keep states by value in many places.
type bulky struct {
	id int
	_  [2047]int
}

func (b *bulky) name() string  { return fmt.Sprintf("bulky%d", b.id) }
func (b bulky) String() string { return b.name() }

// However large the type of the states is, and however many there are, an
// object is where its moves led it.
func TestStatesOfAnySize(t *testing.T) {
	for _, n := range []int{2, 300} {
		states, events := make([]bulky, n), make([]int, n)
		for i := range n {
			states[i].id, events[i] = i, i
		}
		m := mustNew(t, ring(states, events))
		in := m.Instance()
		for i := range 2 * n {
			require.Equal(t, i%n, in.State().id)
			step, err := in.Fire(t.Context(), i%n, user, nil)
			require.NoError(t, err)
			require.Equal(t, (i+1)%n, step.State.id)
			pure, err := m.Next(t.Context(), m.At(states[i%n]), i%n, user, nil)
			require.NoError(t, err)
			require.Equal(t, step.State.id, pure.State.id)
			_, err = in.Fire(t.Context(), (i+2)%n+n, user, nil)
			require.ErrorIs(t, err, fsm.ErrUnknownEvent)
		}
	}
}

// states of no size at all: there can be one.
func TestStateOfNoSize(t *testing.T) {
	m := mustNew(t, ring([]struct{}{{}}, []struct{}{{}}))
	in := m.Instance()
	step, err := in.Fire(t.Context(), struct{}{}, user, nil)
	require.NoError(t, err)
	require.True(t, step.Ignored)
	require.NoError(t, m.Can(t.Context(), m.Start(), struct{}{}, user, nil))
	_, err = in.Fire(t.Context(), struct{}{}, guest, nil)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
}

// Every event is asked in every state, by every actor, in every spelling: no
// short cut leads to another state's row.
func TestNoRowOfAnotherState(t *testing.T) {
	const n = 30
	states, events := make([]string, n), make([]string, n)
	for i := range n {
		states[i], events[i] = fmt.Sprintf("state%d", i), fmt.Sprintf("event%d", i)
	}
	s := ring(states, events)
	s.Actors = []fsm.Actor{user, worker, guest, "fourth", "fifth"}
	for i := range s.Rows {
		s.Rows[i] = s.Rows[i].By(s.Actors[i%len(s.Actors)])
	}
	m := mustNew(t, s)
	actors := append([]fsm.Actor{"nobody", ""}, s.Actors...)
	for i, state := range states {
		for k, event := range events {
			for _, actor := range actors {
				for _, anew := range []bool{false, true} {
					e, a := event, actor
					if anew {
						e, a = strings.Clone(e), fsm.Actor(strings.Clone(string(a)))
					}
					want := fsm.ErrNotAllowed
					if i == k {
						want = fsm.ErrWrongActor
						if actor == s.Actors[i%len(s.Actors)] {
							want = nil
						}
					}
					in := sure(m.InstanceAt(m.At(state)))
					step, err := in.Fire(t.Context(), e, a, nil)
					require.Equal(t, want, sentinel(t, err))
					require.Equal(t, want, sentinel(t, m.Can(t.Context(), m.At(state), e, a, nil)))
					if want == nil {
						require.Equal(t, m.At(states[(i+1)%n]), step.Status)
						require.Equal(t, i, step.Row)
						continue
					}
					require.Equal(t, m.At(state), in.Status())
					te := detail(t, err)
					require.Equal(t, []any{state, event, actor}, []any{te.From, te.Event, te.Actor})
				}
			}
		}
	}
}

// A machine keeps alive what it knows by address: memory that is used again for
// other strings is not taken for one of its own.
func TestStringsMayComeAndGo(t *testing.T) {
	var states, events []string
	for i := range 50 {
		states, events = append(states, fmt.Sprintf("state-%03d", i)), append(events, fmt.Sprintf("event-%03d", i))
	}
	m := mustNew(t, ring(states, events))
	in := m.Instance()
	states, events = nil, nil
	for round := range 20 {
		runtime.GC()
		for i := range 50 {
			e := fmt.Sprintf("event-%03d", i) // at an address that others had before
			if i != round {
				_, err := in.Fire(t.Context(), e, user, nil)
				require.ErrorIs(t, err, fsm.ErrNotAllowed)
			}
			_, err := in.Fire(t.Context(), fmt.Sprintf("other-%03d", i), user, nil)
			require.ErrorIs(t, err, fsm.ErrUnknownEvent)
			require.ErrorIs(t, m.Can(t.Context(), m.At(fmt.Sprintf("other-%03d", i)), e, user, nil), fsm.ErrUnknownState)
			require.NoError(t, m.Can(t.Context(), m.At(fmt.Sprintf("state-%03d", i)), e, user, nil))
		}
		_, err := in.Fire(t.Context(), fmt.Sprintf("event-%03d", round), user, nil)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("state-%03d", round+1), in.State())
	}
	require.Empty(t, states)
	require.Empty(t, events)
}

// One string that begins where another does, or is empty, is another.
func TestStringsThatShareMemory(t *testing.T) {
	all := "abcdef"
	names := []raw{raw(all[:1]), raw(all[:2]), raw(all[:6]), raw(all[1:2]), raw(all[6:]), raw(all[2:4])}
	m := mustNew(t, ring(names, names))
	for i, s := range names {
		step, err := m.Next(t.Context(), m.At(s), s, user, nil)
		require.NoError(t, err)
		require.Equal(t, names[(i+1)%len(names)], step.State)
		require.ErrorIs(t, m.Can(t.Context(), m.At(s), names[(i+1)%len(names)], user, nil), fsm.ErrNotAllowed)
	}
	for _, other := range []raw{raw(all[:3]), raw(all[2:3]), raw(all[5:6])} {
		require.ErrorIs(t, m.Can(t.Context(), m.At(names[0]), other, user, nil), fsm.ErrUnknownEvent)
		require.ErrorIs(t, m.Can(t.Context(), m.At(other), names[0], user, nil), fsm.ErrUnknownState)
	}
}
