package sqlstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func turnJob(id string, expect int64, token lifecycle.Token) *job {
	j := &job{c: &lifecycle.Commit{Token: lifecycle.NewToken()}, steps: make([]step, 1)}
	st := &j.steps[0]
	st.ch = &lifecycle.StoredChange{To: lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "m", ID: id}}}
	st.expect, st.vals[vExpectToken] = expect, token[:]
	return j
}

// One at a time, whoever comes, goes or gives up; and everybody who stays gets it.
func TestTurnIsOneAtATime(t *testing.T) {
	var turn turn
	var inside, had atomic.Int64
	var group sync.WaitGroup
	for w := range 16 {
		group.Go(func() {
			for i := range 300 {
				ctx, stop := context.WithCancel(t.Context())
				if (w+i)%5 == 0 {
					go stop() // ends at any moment
				}
				ok, err := turn.take(ctx, turnJob("a", 0, lifecycle.Token{}))
				if err == nil != ok {
					t.Errorf("take: %v, %v", ok, err)
				}
				if ok {
					if inside.Add(1) != 1 {
						t.Error("two have the turn")
					}
					had.Add(1)
					inside.Add(-1)
					turn.give(nil, false)
				}
				stop()
			}
		})
	}
	group.Wait()
	require.False(t, turn.taken)
	require.False(t, turn.woken)
	require.Empty(t, turn.waiting)
	require.GreaterOrEqual(t, had.Load(), int64(16*240))
}

// Who is running goes before those who sleep, but not for longer than patience.
func TestTurnPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn turn
		take := func() {
			ok, err := turn.take(t.Context(), turnJob("a", 0, lifecycle.Token{}))
			require.True(t, ok)
			require.NoError(t, err)
		}
		take()
		done := make(chan struct{})
		go func() {
			take()
			close(done)
		}()
		synctest.Wait()
		turn.give(nil, false)
		take() // before the other one has looked, or after it was: it waits again
		select {
		case <-done:
			t.Fatal("the turn is somebody's")
		default:
		}
		time.Sleep(2 * patience)
		turn.give(nil, false)
		require.True(t, turn.taken, "it is given to who has waited long enough")
		<-done
		turn.give(nil, false)
		require.False(t, turn.taken)
	})
}

// Who expects what is no more needs no turn to be told.
func TestTurnLate(t *testing.T) {
	var turn turn
	first := turnJob("a", 3, lifecycle.Token{1})
	ok, err := turn.take(t.Context(), first)
	require.True(t, ok)
	require.NoError(t, err)
	result := make(chan bool)
	go func() {
		ok, _ := turn.take(t.Context(), turnJob("a", 3, lifecycle.Token{1}))
		result <- ok
	}()
	turn.give(first, true)
	late := <-result // it may have come after
	if late {
		t.Fatal("it has the turn although the object was written")
	}
	for _, x := range []struct {
		j  *job
		ok bool
	}{
		{turnJob("a", 4, first.c.Token), true},
		{turnJob("a", 4, lifecycle.Token{9}), false},
		{turnJob("a", 3, lifecycle.Token{1}), false},
		{turnJob("a", 5, lifecycle.Token{5}), true}, // of another process
		{turnJob("b", 3, lifecycle.Token{1}), true},
		{&job{steps: first.steps, looked: true}, true},
		{&job{steps: make([]step, 2)}, true},
	} {
		ok, err := turn.take(t.Context(), x.j)
		require.NoError(t, err)
		require.Equal(t, x.ok, ok)
		if ok {
			turn.give(x.j, false)
		}
	}
}
