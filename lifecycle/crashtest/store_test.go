package crashtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// Where no fault happens, what a process sees is the store.
func TestStoreIsOne(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Synctest: true, Attempts: 10, Sequences: 5,
		New: func(t testing.TB) lifecycle.Store {
			inner := lifecycle.NewMemoryStore()
			w := newWorld(t, &Harness{}, &scenario{}, inner, nil)
			return &store{p: &Process{w: w, name: "alpha"}, inner: inner}
		},
	})
}

// poor is a store with records and nothing else.
type poor struct{ lifecycle.Store }

func (poor) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

// Of a store without history and messages neither is asked, and the scenario is
// performed all the same.
func TestPoorStore(t *testing.T) {
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store { return poor{lifecycle.NewMemoryStore()} }
	h.Kinds = []Kind{CrashBefore, CrashAfter, Paused}
	s := plainPlanted()
	r, _ := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)

	w := newWorld(t, &Harness{}, &scenario{}, poor{lifecycle.NewMemoryStore()}, nil)
	p := &store{p: &Process{w: w}, inner: w.inner}
	_, err := p.History(t.Context(), key("a"), 0, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = p.Messages(t.Context(), 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, p.Discard(t.Context(), 1), errors.ErrUnsupported)
}

// forgetful is a memory store that recalls what was read last, which somebody else
// may have moved since.
type forgetful struct {
	*lifecycle.MemoryStore
	mu       sync.Mutex
	read     map[lifecycle.Key]lifecycle.StoredRecord
	recalled int
}

func (s *forgetful) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.read[k] = r
	}
	return r, err
}

func (s *forgetful) Commit(ctx context.Context, c *lifecycle.Commit) error {
	err := s.MemoryStore.Commit(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.Changes {
		if err != nil {
			delete(s.read, c.Changes[i].To.Key)
		}
	}
	return err
}

func (s *forgetful) Recall(k lifecycle.Key) (lifecycle.StoredRecord, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.read[k]
	if ok {
		s.recalled++
	}
	return r, ok
}

// What a store recalls is recalled by the processes, too: they are hit at what they
// write on the strength of it.
func TestRecall(t *testing.T) {
	var last *forgetful
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store {
		last = &forgetful{MemoryStore: lifecycle.NewMemoryStore(), read: map[lifecycle.Key]lifecycle.StoredRecord{}}
		return last
	}
	Run(t, h, Scenario[vms]{
		Start: startVMs, Script: life,
		Ends: map[lifecycle.Key][]string{key("a"): {""}, key("b"): {"failed"}},
	})
	require.NotZero(t, last.recalled)
}

// What Start learns about its process: where nobody is to come back, the next one
// has another name, and plays the same role.
func TestProcess(t *testing.T) {
	names := map[string]int{}
	s := plainPlanted()
	s.started = func(ctx context.Context, p *Process, m vms) error {
		names[p.Role()+" is "+p.Name()]++
		require.Equal(t, p.Name(), p.Owner().Name())
		require.Zero(t, p.Queue().Stats().Keys)
		_, err := p.Store().Get(ctx, key("a"))
		return err
	}
	h := memoryHarness()
	h.Kinds = []Kind{DeathAfter}
	r, c := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)
	// The first write is that of Join: whoever dies there has not got this far.
	require.Equal(t, map[string]int{"alpha is alpha": c.Writes, "alpha is alpha-heir": c.Writes}, names)
}

// Discarded messages are not missed.
func TestDiscard(t *testing.T) {
	h := memoryHarness()
	h.Kinds = []Kind{LostAnswer}
	s := plainPlanted()
	tellsMaking(s)
	s.started = func(_ context.Context, p *Process, _ vms) error {
		p.Every(func(ctx context.Context) error { return p.Store().(lifecycle.Outbox).Discard(ctx, 1) })
		return nil
	}
	script := s.Script
	s.Script = func(ctx context.Context, w *World[vms]) error {
		err := script(ctx, w)
		w.Pass(1)
		return err
	}
	r, _ := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)
}

// The world outside takes no operation that is older than one it has seen, and
// work that is none has no effect.
func TestEffect(t *testing.T) {
	w := newWorld(t, &Harness{}, &scenario{}, lifecycle.NewMemoryStore(), nil)
	p := &Process{w: w}
	require.NoError(t, p.Apply(key("a"), 2))
	require.ErrorIs(t, p.Apply(key("a"), 1), lifecycle.ErrStale)
	require.NoError(t, p.Apply(key("b"), 1))
	require.Empty(t, w.wrong)
	require.NoError(t, p.apply(effect{key("a"), 2, "alpha", 7}))
	require.Equal(t, []string{`operation 2 of vm "a" is applied 2 times: by nobody in particular, then by alpha in epoch 7`}, w.wrong)
	require.PanicsWithValue(t, "crashtest: Effect outside of work", func() { _ = p.Effect(t.Context()) })
}
