package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestAllocations pins upper bounds of what a call allocates on a store in
// memory, with a payload without references and no observer. They are what it
// is today; whoever needs fewer lowers them here.
func TestAllocations(t *testing.T) {
	m := lifecycle.New(sizedVM, lifecycle.NewMemoryStore(), nil)
	ctx := context.Background()
	must(m.Create(ctx, "a", "import", user, size{N: 1}))(t)
	must(m.Create(ctx, "moving", "create", user, size{N: 1}))(t)
	for range 2 * lifecycle.DefaultKeepHistory { // it is a ring then, and grows no more
		must(m.Fire(ctx, "a", "touch", user, nil))(t)
		must(m.Fire(ctx, "moving", "progress", agent, nil))(t)
	}
	fire := func(id string, e event) func() {
		return func() { _, _ = m.Fire(ctx, id, e, user, nil) }
	}
	report := func(op lifecycle.OpID, e event) func() {
		return func() { _, _ = m.Report(ctx, "moving", op, e, agent, "") }
	}
	for _, c := range []struct {
		name string
		most float64
		call func()
	}{
		{"get", 0, func() { _, _ = m.Get(ctx, "a") }},
		{"fire", 0, fire("a", "touch")},
		{"fire ignored", 0, fire("a", "ping")},
		{"fire not allowed", 3, fire("a", "retry")},
		{"fire busy", 5, fire("moving", "update")},
		{"report applied", 0, report(1, "progress")},
		{"report stale", 0, report(0, "progress")},
	} {
		got := testing.AllocsPerRun(100, c.call)
		if !raceEnabled {
			require.LessOrEqual(t, got, c.most, c.name)
		}
		t.Logf("%s: %v", c.name, got)
	}
}

// TestDoAllocations pins what an operation of empty work leaves behind: what its
// handle, its ticket and its context are made of, because others may keep them,
// and a goroutine and a channel where it did not find its work's end at once.
func TestDoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	m := lifecycle.New(benchVM, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{Worker: "worker", Done: []event{"done"}})
	ctx := context.Background()
	must(m.Add(ctx, "a", user, size{N: 1}))(t)
	work := lifecycle.Func(func(context.Context) error { return nil })
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			h, err := m.Do(ctx, "a", "go", user, work, nil)
			if err == nil {
				_, err = h.Wait(ctx)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	t.Logf("%d allocations, %d bytes", r.AllocsPerOp(), r.AllocedBytesPerOp())
	require.LessOrEqual(t, r.AllocsPerOp(), int64(7))
	require.LessOrEqual(t, r.AllocedBytesPerOp(), int64(1400))
}
