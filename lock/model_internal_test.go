package lock

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTreeAgainstModel makes random calls. After each call it compares everything
// that the tree stores with the oracle: counters, links, ids and blockers, see
// checkTree. A request is granted if and only if no present request conflicts. The
// tests of package locktest compare the answers with those of a simple locker in full.
//
// It takes about 10^4 steps, and 10^6 with INTERLOCK_LONG set.
func TestTreeAgainstModel(t *testing.T) {
	rounds := 1
	if long {
		rounds = 100
	}
	for range rounds {
		rapid.Check(t, func(rt *rapid.T) {
			ctx, cancel := context.WithCancel(context.Background())
			m := &model{tree: Must(&Config{MaxWaiters: 5}), ctx: ctx}
			defer m.end(cancel)
			for range 110 {
				m.step(rt)
				require.Empty(rt, checkTree(m.tree))
			}
		})
	}
}

// model is a tree and everything that the calls have returned.
type model struct {
	tree    *Tree
	ctx     context.Context // ends all waits
	handles []Handle
	grants  []*Grant
	waits   []*modelWait
}

// modelWait is a Lock in a goroutine.
type modelWait struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it has returned; the fields below are set before
	grant  *Grant
	err    error
}

var modelPaths = []string{"/", "/a", "/a/b", "/a/b/c", "/a/b/d", "/ab", "/a-b", "/c/d/e/f", "/c/d/e/g"}

func drawRequest(t *rapid.T) Request {
	path := MustParse(rapid.SampledFrom(modelPaths).Draw(t, "path"))
	return Request{path, rapid.SampledFrom(Modes[:]).Draw(t, "mode")}
}

// free reports whether no present request conflicts, by the oracle.
func (m *model) free(t *rapid.T, rs []Request) bool {
	s, err := m.tree.Snapshot(m.ctx)
	require.NoError(t, err)
	return !slices.ContainsFunc(s.Holders, func(h Holder) bool {
		theirs := marks(Request{h.Path, h.Mode})
		return slices.ContainsFunc(rs, func(r Request) bool { return conflict(marks(r), theirs) })
	})
}

func (m *model) step(t *rapid.T) {
	m.collect()
	r := drawRequest(t)
	rs := []Request{r}
	if rapid.Bool().Draw(t, "list") {
		rs = append(rs, drawRequest(t))
	}
	pick := rapid.IntRange(0, 1000).Draw(t, "pick")
	switch n := rapid.IntRange(0, 19).Draw(t, "step"); {
	case n < 4:
		free := m.free(t, rs[:1])
		h, err := m.tree.Try(r.Path, r.Mode)
		require.Equal(t, free, err == nil, "Try %s: %v", r, err)
		if err == nil {
			m.handles = append(m.handles, h)
		}
	case n < 8:
		free := m.free(t, rs)
		g, err := m.tree.TryLockAll(m.ctx, rs, nil)
		require.Equal(t, free, err == nil, "TryLockAll %s: %v", rs, err)
		if err == nil {
			m.grants = append(m.grants, g)
		}
	case n < 12:
		m.lock(t, rs, &Options{ID: rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(t, "id")})
	case n < 14 && len(m.handles) > 0: // mostly stale ones
		m.handles[pick%len(m.handles)].Unlock()
	case n < 15 && len(m.waits) > 0:
		w := m.waits[pick%len(m.waits)]
		w.cancel()
		<-w.done
	case len(m.grants) > 0:
		m.change(t, m.grants[pick%len(m.grants)], n, r.Mode)
	}
}

// change converts or ends a grant, which may have ended before.
func (m *model) change(t *rapid.T, g *Grant, n int, mode Mode) {
	var err error
	switch n {
	case 15:
		err = g.Upgrade(m.ctx, mode)
	case 16:
		err = g.Downgrade(m.ctx, mode)
	case 17:
		err = m.tree.Break(m.ctx, g.Token(), "")
	default:
		err = g.Unlock(m.ctx)
		require.Error(t, g.Check())
	}
	for _, allowed := range []error{nil, ErrConflict, ErrInvalid, ErrNotHeld, ErrLost} {
		if errors.Is(err, allowed) {
			return
		}
	}
	t.Fatalf("%v", err)
}

// lock starts a Lock and returns when it has returned or waits.
func (m *model) lock(t *rapid.T, rs []Request, o *Options) {
	free := o.ID != "" || m.free(t, rs)
	before, err := m.tree.Snapshot(m.ctx)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(m.ctx)
	w := &modelWait{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.grant, w.err = m.tree.LockAll(ctx, rs, o)
	}()
	m.waits = append(m.waits, w)
	for {
		select {
		case <-w.done:
			require.True(t, free || errors.Is(w.err, ErrQueueFull), "%s: %v", rs, w.err)
			return
		default:
		}
		now, err := m.tree.Snapshot(m.ctx)
		require.NoError(t, err)
		if now.Waiting > before.Waiting || m.joined(o.ID) {
			return
		}
		runtime.Gosched()
	}
}

// joined reports whether more than one call waits for an id.
func (m *model) joined(id string) bool {
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	c := m.tree.ids[id]
	return c != nil && c.state == waiting && c.calls > 1
}

// collect moves the grants of the waits that have returned.
func (m *model) collect() {
	m.waits = slices.DeleteFunc(m.waits, func(w *modelWait) bool {
		select {
		case <-w.done:
			w.cancel()
			if w.err == nil {
				m.grants = append(m.grants, w.grant)
			}
			return true
		default:
			return false
		}
	})
}

func (m *model) end(cancel func()) {
	cancel()
	for _, w := range m.waits {
		<-w.done
	}
}
