package models

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/lock"
)

// tree is what a trial is made with: the shipped one, or one with a fault.
type tree interface {
	LockAll(context.Context, []lock.Request, *lock.Options) (*lock.Grant, error)
	Break(context.Context, lock.Token, string) error
}

// visitor is a client in a trial.
type visitor struct {
	held   *lock.Grant
	cancel context.CancelFunc
	ended  chan struct{}
}

// tryTree runs a trial on a tree, in a synctest bubble, which detects a waiting client.
func tryTree(t *testing.T, asks [][]lock.Request, fresh func() tree) func(LockTrial) (LockResult, error) {
	return func(trial LockTrial) (r LockResult, err error) {
		synctest.Test(t, func(t *testing.T) {
			on := fresh()
			var all [maxLockClients]*visitor
			ask := func(i int) {
				v := &visitor{ended: make(chan struct{})}
				ctx, cancel := context.WithCancel(context.Background())
				v.cancel, all[i] = cancel, v
				go func() {
					defer close(v.ended)
					v.held, _ = on.LockAll(ctx, asks[i], &lock.Options{Owner: fmt.Sprint(i)})
				}()
				synctest.Wait()
			}
			holds := func() (list [maxLockClients]bool) {
				synctest.Wait()
				for i, v := range all {
					list[i] = v != nil && v.held != nil
				}
				return list
			}
			for _, i := range trial.Present {
				ask(i)
			}
			r.Before = holds()
			if v := all[trial.Client]; v == nil {
				ask(trial.Client)
			} else if v.held != nil {
				err = leave(on, v.held, trial.Does == LockBreaks)
				v.held = nil
			} else {
				v.cancel()
			}
			if h, ok := on.(*hastyTree); ok {
				h.left()
			}
			r.After = holds()
			for _, v := range all { // release the rest
				if v != nil {
					v.cancel()
					<-v.ended
					if v.held != nil {
						_ = v.held.Unlock(context.Background())
					}
				}
			}
		})
		return r, err
	}
}

func leave(on tree, held *lock.Grant, broken bool) error {
	if broken {
		return on.Break(context.Background(), held.Token(), "its owner is dead")
	}
	return held.Unlock(context.Background())
}

func at(mode lock.Mode, path string) lock.Request {
	return lock.Request{Path: lock.MustParse(path), Mode: mode}
}

// visitors ask for nodes above, at and below each other, and for several at once.
var visitors = [][]lock.Request{
	{at(lock.X, "/a/b")},
	{at(lock.S, "/a")},
	{at(lock.X, "/a/c"), at(lock.S, "/d")},
	{at(lock.SIX, "/a")},
	{at(lock.IX, "/d"), at(lock.S, "/a/b")},
}

// TestVerifyLockTree explores what clients of the shipped tree can do, to the end.
func TestVerifyLockTree(t *testing.T) {
	t.Parallel()
	m := LockTree{Asks: visitors[:4], Times: 2, GiveUps: 1, Breaks: 1}
	if long {
		m = LockTree{Asks: visitors, Times: 2, GiveUps: 1, Breaks: 1}
	}
	m.Try = tryTree(t, m.Asks, func() tree { return lock.Must(nil) })
	v, err := m.Model().Explore(t.Context(), nil)
	require.NoError(t, err)
	t.Log(v)
	require.NoError(t, v.Err())
	require.Greater(t, v.States, 1000)
}

// weakTree takes an X for an IS.
type weakTree struct{ *lock.Tree }

func (w weakTree) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	weak := make([]lock.Request, len(rs))
	for i, r := range rs {
		if r.Mode == lock.X {
			r.Mode = lock.IS
		}
		weak[i] = r
	}
	return w.Tree.LockAll(ctx, weak, o)
}

// hastyTree grants every request without a conflict with a holder: a waiting client is not
// seen, and is overtaken.
type hastyTree struct {
	*lock.Tree
	again chan struct{} // closed when waiting clients may try again
}

func (h *hastyTree) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	for {
		held, err := h.TryLockAll(ctx, rs, o)
		if err == nil {
			return held, nil
		}
		select {
		case <-h.again:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (h *hastyTree) left() {
	again := h.again
	h.again = make(chan struct{})
	close(again)
}

// shyTree takes a list for one request for everything.
type shyTree struct{ *lock.Tree }

func (s shyTree) LockAll(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Grant, error) {
	if len(rs) > 1 {
		return s.Lock(ctx, lock.Request{Path: lock.Root(), Mode: lock.X}, o)
	}
	return s.Tree.LockAll(ctx, rs, o)
}

// TestFaultyLockTrees: what is wrong with a tree is found.
func TestFaultyLockTrees(t *testing.T) {
	for name, test := range map[string]struct {
		fresh    func() tree
		property string
		steps    int
	}{
		"weak":  {func() tree { return weakTree{lock.Must(nil)} }, "holders are compatible", 2},
		"hasty": {func() tree { return &hastyTree{lock.Must(nil), make(chan struct{})} }, "no request is overtaken", 3},
		"shy":   {func() tree { return shyTree{lock.Must(nil)} }, "every wait has a conflict", 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := LockTree{Asks: visitors, Times: 1, Try: tryTree(t, visitors, test.fresh)}
			v, err := m.Model().Explore(t.Context(), nil)
			require.NoError(t, err)
			t.Log(v)
			require.Equal(t, explore.Violated, v.Outcome)
			require.Equal(t, test.property, v.Property)
			require.Len(t, v.Trace.Steps, test.steps)
		})
	}
}
