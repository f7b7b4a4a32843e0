package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lifecycle"
)

func memoryHarness() Harness {
	return Harness{New: func(testing.TB) lifecycle.Store { return lifecycle.NewMemoryStore() }}
}

// Memory and a store that has records as bytes on the other side of a
// connection answer the same.
func TestDifferential(t *testing.T) {
	Differential(t, memoryHarness(), (&fault{remote: func(*remote) {}}).harness(t))
}

// What one of the two does not have is not asked of the other.
func TestDifferentialOfLess(t *testing.T) {
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store { return bare{lifecycle.NewMemoryStore()} }
	Differential(t, memoryHarness(), h)
}

// A store that keeps little, and begins its numbers anew above those of what it
// has forgotten, is not another store.
func TestDifferentialOfForgetfulStores(t *testing.T) {
	h := memoryHarness()
	h.New = func(testing.TB) lifecycle.Store { return &lifecycle.MemoryStore{KeepHistory: kept, KeepRemoved: kept} }
	Differential(t, memoryHarness(), h)
}

// One fault in one of two stores is a difference, and is told shortly.
func TestDifferentialFindsFaults(t *testing.T) {
	for _, test := range []struct {
		name, part string
		plant      func(b *bent)
	}{
		{"targets are lost", "Manager", func(b *bent) {
			b.shown(func(r *lifecycle.StoredRecord) { r.Target = "" })
		}},
		{"what was saved is lost", "Manager", func(b *bent) {
			b.eachChange(func(ch *lifecycle.StoredChange) { ch.To.Saved = nil })
		}},
		{"deadlines are lost", "Manager", func(b *bent) {
			b.eachChange(func(ch *lifecycle.StoredChange) { ch.Timeout = 0 })
		}},
		{"preconditions are not asked", "Manager", func(b *bent) {
			b.edited(func(c *lifecycle.Commit) { c.Require = nil })
		}},
		{"the history has no reasons", "Manager", func(b *bent) {
			b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
				rows, err := b.inner.History(ctx, k, after, limit)
				for i := range rows {
					rows[i].Reason = ""
				}
				return rows, err
			}
		}},
		{"a page is one too short", "Store", func(b *bent) {
			b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
				found, err := b.inner.List(ctx, q)
				return found[:min(len(found), max(1, q.Limit-1))], err
			}
		}},
		{"a state that is wrong is no conflict", "Store", func(b *bent) {
			b.eachChange(func(ch *lifecycle.StoredChange) { ch.From = b.now(ch.To.Key).State })
		}},
		{"the last message comes first", "Store", func(b *bent) {
			b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
				list, err := b.inner.Messages(ctx, all)
				slices.Reverse(list)
				return list[:min(limit, len(list))], err
			}
		}},
		{"a commit sent again is a conflict", "Store", func(b *bent) {
			known := map[lifecycle.Token]bool{}
			b.edited(func(c *lifecycle.Commit) {
				if known[c.Token] {
					c.Token = lifecycle.NewToken()
				}
				known[c.Token] = true
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reference := memoryHarness()
			reference.Seed = 1
			other := (&fault{plant: test.plant}).harness(t)
			r := suitetest.Record(t, func(t testing.TB) {
				if test.part == "Store" {
					differStores(t, &reference, &other)
				} else {
					differManagers(t, &reference, &other)
				}
			})
			require.True(t, r.Failed())
			require.Contains(t, r.Text(), "(Seed 1)")
			require.Contains(t, r.Text(), "by the first store, and by the second")
			require.NotRegexp(t, `(?m)^ 10 `, r.Text(), "nine steps are enough to show it")
			t.Log(r.Text())
		})
	}
}
