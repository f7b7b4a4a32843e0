package prometheus_test

import (
	"context"
	"os"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
)

var benchTable = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "bench-vm", Initial: "idle", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "idle"}, {Name: "busy"}},
	Rows:   fsm.Rows(fsm.Move("idle", "go", "busy").By("user"), fsm.Move("busy", "done", "idle").By("user")),
})

// firing moves one object, in memory.
func firing(o lifecycle.Observer) func(int) {
	ctx := context.Background()
	m := lifecycle.Must(benchTable, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{Observer: o})
	fire := func(e string) {
		if _, err := m.Fire(ctx, "vm-1", e, "user", nil); err != nil {
			panic(err)
		}
	}
	if _, err := m.Add(ctx, "vm-1", "idle", "user", struct{}{}, nil); err != nil {
		panic(err)
	}
	return func(steps int) {
		for range (steps + 1) / 2 {
			fire("go")
			fire("done")
		}
	}
}

func BenchmarkRatios(b *testing.B) {
	ratio.Print(os.Stdout, ratio.Measure([]ratio.Pair{
		{Name: "prometheus/fire", Goal: 1.3, Base: firing(lifecycle.Observer{}), Subject: firing(metrics.New().Observer(benchTable.Table()))},
		{Name: "lifecycle/disabled-observers", Goal: 1.05, Base: firing(lifecycle.Observer{}), Subject: firing(lifecycle.Tee(lifecycle.Observer{}, lifecycle.Observer{}))},
	}, nil))
	ratio.PrintMachine(os.Stdout)
}
