package store

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/internal/ratio"
)

// BenchmarkRatios compares a commit with a transaction of the same comparisons, writes and
// reads, whose keys and values are made by hand.
func BenchmarkRatios(b *testing.B) {
	for name, fsync := range map[string]bool{"durable": true, "no-fsync": false} {
		b.Run(name, func(b *testing.B) {
			p := newPlace(etcdtest.Start(b, &etcdtest.Config{Fsync: fsync, Quota: 8 << 30}))
			store, bare := p.open(b), newBare(p.server.Client(b))
			ctx := context.Background()
			r := put(b, store, key("a"), "Idle")
			n := 0
			pair := ratio.Pair{
				Name: "etcdstore/" + name + "/commit", Goal: 1.25,
				Base: func(n int) {
					for range n {
						bare.commit(ctx)
					}
				},
				Subject: func(times int) {
					for range times {
						n++
						c := commitOf(change(r, []string{"Idle", "Moving"}[n%2]))
						if err := store.Commit(ctx, c); err != nil {
							panic(err)
						}
						r = c.Changes[0].To
					}
				},
			}
			pair.Base(1)
			ratio.Print(os.Stdout, ratio.Measure([]ratio.Pair{pair}, &ratio.Config{Rounds: 301, Slice: 4 * time.Millisecond}))
		})
	}
	ratio.PrintMachine(os.Stdout)
}

// bare moves one object by hand.
type bare struct {
	client *clientv3.Client
	record string
	states [2]string
	n      int
}

func newBare(client *clientv3.Client) *bare {
	return &bare{client: client, record: "bare/record/crane\x00a", states: [2]string{"bare/state/crane\x00Idle\x00a", "bare/state/crane\x00Moving\x00a"}}
}

func (x *bare) time(n int) string { return fmt.Sprintf("bare/time/crane\x00%016x\x00a", n) }

func (x *bare) revision(n int) string { return fmt.Sprintf("%080d", n) }

func (x *bare) commit(ctx context.Context) {
	from, to := x.states[x.n%2], x.states[(x.n+1)%2]
	history := fmt.Sprintf("bare/history/crane\x00a\x00%016x", x.n+1)
	condition := clientv3.Compare(clientv3.Value(from), "=", x.revision(x.n))
	if x.n == 0 {
		condition = clientv3.Compare(clientv3.CreateRevision(x.record), "=", 0)
	}
	resp, err := x.client.Txn(ctx).If(condition).Then(
		clientv3.OpPut(x.record, strings.Repeat("r", 300)), clientv3.OpDelete(from), clientv3.OpDelete(x.time(x.n)),
		clientv3.OpPut(to, x.revision(x.n+1)), clientv3.OpPut(x.time(x.n+1), "1"), clientv3.OpPut(history, strings.Repeat("h", 370)),
	).Else(clientv3.OpGet(x.record), clientv3.OpGet("bare/removed/crane\x00a"), clientv3.OpGet(history)).Commit()
	if err != nil || !resp.Succeeded {
		panic(fmt.Sprint(resp, err))
	}
	x.n++
}
