package prometheus_test

import (
	"context"
	"fmt"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

func Example() {
	registry := client.NewRegistry()
	collector := metrics.New()
	registry.MustRegister(collector)
	work := queue.Must(&queue.Config[lifecycle.Key]{
		Observer: metrics.QueueObserver[lifecycle.Key](collector, "work"),
	})
	vms := lifecycle.Must(vmTable, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{
		Queue: work, Observer: collector.Observer(vmTable.Table()),
	})
	collector.AddManager("vm", vms)
	collector.AddQueue("work", work)

	_, _ = vms.Create(context.Background(), "vm-1", "create", "user", struct{}{}, nil)
	_, _ = vms.Fire(context.Background(), "vm-1", "delete", "user", nil)
	show(registry, "interlock_transitions_total", "interlock_refusals_total", "interlock_stuck_objects")
	// Output:
	// interlock_refusals_total code=busy event=delete machine=vm: 1
	// interlock_stuck_objects cause=deadline machine=vm: 0
	// interlock_stuck_objects cause=no-owner machine=vm: 0
	// interlock_stuck_objects cause=owner-dead machine=vm: 0
	// interlock_transitions_total event=create from=absent machine=vm to=creating: 1
	// interlock_transitions_total event=delete from=failed machine=vm to=absent: 0
	// interlock_transitions_total event=delete from=running machine=vm to=absent: 0
	// interlock_transitions_total event=done from=creating machine=vm to=running: 0
	// interlock_transitions_total event=fail from=creating machine=vm to=failed: 0
	// interlock_transitions_total event=late from=creating machine=vm to=failed: 0
}

func ExampleCollector_LockObserver() {
	registry := client.NewRegistry()
	collector := metrics.New()
	registry.MustRegister(collector)
	sites := lock.Must(&lock.Config{Observer: collector.LockObserver("sites")})
	collector.AddLocks("sites", sites)

	_, _ = sites.Try(lock.MustParse("/seoul/rack1"), lock.X)
	show(registry, "interlock_lock_requests")
	// Output:
	// interlock_lock_requests lock=sites state=held: 1
	// interlock_lock_requests lock=sites state=waiting: 0
}

// show prints counters and gauges.
func show(g client.Gatherer, names ...string) {
	families, err := g.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, name := range names {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				fmt.Printf("%s %s: %v\n", name, strings.Join(labels, " "), m.GetCounter().GetValue()+m.GetGauge().GetValue())
			}
		}
	}
}
