package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

// attempt is one call about an object. Records are known by the token of their commit, with
// which a revision begins.
type attempt struct {
	commits bool
	expect  string // token of the expected record
	token   string // of the commit
}

type outcome struct {
	written, unknown bool
	current          string // token of the record that was read, or that was in the way
}

func tokenOf(r *lifecycle.StoredRecord) string { return string(r.Revision)[:32] }

// register is an object whose record is replaced by compare-and-set. A call with an unknown
// outcome never returns: it has its effect when the record is as it expects, or none.
func register(first string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(string), input.(attempt), output.(outcome)
			switch {
			case out.unknown && in.expect != now:
				return true, now
			case out.unknown:
				return true, in.token
			case out.written:
				return in.expect == now, in.token
			case in.commits:
				return in.expect != now && out.current == now, now
			}
			return out.current == now, now
		},
	}
}

// Reads, commits, conflicts and unknown outcomes of many callers have one order, while
// connections are cut and contexts end. Every object is a history of its own.
func TestHistoriesUnderFaults(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	network := proxy.New(t, "tcp", p.server.Endpoint())
	histories := scale.Of(40, 400)
	const callers, each = 4, 12
	var stores [callers]*etcdstore.Store
	for i := range stores {
		stores[i] = p.over(t, etcdtest.Client(t, network.Addr()))
	}
	direct := p.open(t)
	network.CutAtRandom(20)
	var clock, unknown atomic.Int64
	calls := 0
	for n := range histories {
		first := put(t, direct, key(fmt.Sprint(n)), "Idle")
		var lists [callers][]porcupine.Operation
		var group sync.WaitGroup
		for i, store := range stores {
			group.Go(func() {
				known, random := first, rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for range each {
					op := porcupine.Operation{ClientId: i, Call: clock.Add(1)}
					var in attempt
					var out outcome
					var err error
					if random.IntN(3) == 0 {
						var r lifecycle.StoredRecord
						if r, err = store.Get(t.Context(), first.Key); err == nil {
							known, out.current = r, tokenOf(&r)
						}
					} else {
						c := commitOf(change(known, fmt.Sprint("State ", i)))
						in = attempt{true, tokenOf(&known), c.Token.String()}
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if random.IntN(5) == 0 { // a caller that does not wait
							ctx, cancel = context.WithTimeout(ctx, rand.N(2*time.Millisecond))
						}
						err = store.Commit(ctx, c)
						cancel()
						conflict, refused := errors.AsType[*lifecycle.ConflictError](err)
						switch {
						case err == nil:
							known, out.written = c.Changes[0].To, true
						case refused:
							known, out.current, err = conflict.Current, tokenOf(&conflict.Current), nil
						case errors.Is(err, lifecycle.ErrUnknownOutcome):
							out.unknown, err = true, nil
							unknown.Add(1)
						}
					}
					if err != nil { // it has no effect
						if !errors.Is(err, lifecycle.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("history %d: %v", n, err)
						}
						continue
					}
					op.Input, op.Output, op.Return = in, out, clock.Add(1)
					if out.unknown {
						op.Return = math.MaxInt64
					}
					lists[i] = append(lists[i], op)
				}
			})
		}
		group.Wait()
		var history []porcupine.Operation
		for i := range lists {
			history = append(history, lists[i]...)
		}
		calls += len(history)
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(register(tokenOf(&first)), history, time.Minute),
			"%d calls about one object have no order", len(history))
	}
	require.Positive(t, unknown.Load())
	t.Logf("%d histories of %d calls, %d of them with an unknown outcome, %d connections cut: none illegal", histories, calls, unknown.Load(), network.Cuts())
}
