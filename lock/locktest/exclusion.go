package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/interlock-go/interlock/lock"
)

func exclusionDemands() []demand {
	return []demand{
		{
			name: "G1_exclusion/pairs_follow_the_rule", run: pairs,
			says: "Of two requests both are granted if no node is marked by both in modes that do not go together, and one otherwise, whichever comes first.",
		},
		{
			name: "G1_exclusion/concurrent_callers_exclude_each_other", run: critical, crowd: true,
			says: "Where many goroutines lock, try, wait, list and convert, no two of them hold what conflicts.",
		},
	}
}

// pairs tries every pair of requests in a small tree, in every order.
func pairs(t *trial) {
	known := newRules()
	var all []lock.Request
	for _, path := range []string{"/", "/a", "/a/b", "/a/b/c/d", "/ab", "/a!"} {
		for _, m := range lock.Modes {
			all = append(all, at(m, path))
		}
	}
	for _, first := range all {
		held := t.take("first", first)
		for _, second := range all {
			if known.clash(first, second) {
				t.refused("second", second)
			} else {
				t.unlock(t.take("second", second))
			}
		}
		t.unlock(held)
	}
	t.idle("all pairs")
}

// table is where goroutines write down what they hold, to find others there.
type table struct {
	mu    sync.Mutex
	known *rules
	held  map[*lock.Held][]lock.Request
	fault string // the first
}

func (b *table) enter(h *lock.Held, rs []lock.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, has := range b.held {
		if b.fault == "" && other != h && b.known.clashAll(rs, has) {
			b.fault = fmt.Sprintf("%s with token %d is held together with %s with token %d", rs, h.Token(), has, other.Token())
		}
	}
	b.held[h] = rs
}

func (b *table) leave(h *lock.Held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, h)
}

func critical(t *trial) {
	b := table{known: newRules(), held: map[*lock.Held][]lock.Request{}}
	ctx := t.bounded()
	together(8, func(i int) {
		random := rand.New(rand.NewPCG(t.h.Seed, uint64(i)))
		draw := func() lock.Request {
			return lock.Request{Path: world[random.IntN(len(world))], Mode: lock.Modes[random.IntN(len(lock.Modes))]}
		}
		for range t.attempts {
			rs := []lock.Request{draw()}
			if random.IntN(3) == 0 {
				rs = append(rs, draw())
			}
			ask := waitFor
			if random.IntN(2) == 0 {
				ask = tryFor
			}
			h, err := ask(ctx, t.l, rs, by(fmt.Sprint("goroutine ", i)))
			if errors.Is(err, lock.ErrConflict) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", rs, err)
				return
			}
			b.enter(h, rs)
			runtime.Gosched() // others are to find it
			if random.IntN(3) == 0 {
				if m := lock.Modes[random.IntN(len(lock.Modes))]; h.Upgrade(t.Context(), m) == nil {
					b.enter(h, h.Requests())
				}
			}
			// What it leaves is written down before it is free for others.
			if random.IntN(3) == 0 {
				b.enter(h, lowered(h.Requests()))
				if err := h.Downgrade(t.Context(), lock.IS); err != nil {
					t.Errorf("Downgrade of %s to IS: %v", rs, err)
				}
			}
			b.leave(h)
			if err := h.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock of %s: %v", rs, err)
			}
		}
	})
	if b.fault != "" {
		t.Fatal(b.fault)
	}
	t.idle("all goroutines have unlocked")
}

// lowered returns requests as they are after a Downgrade to IS.
func lowered(rs []lock.Request) []lock.Request {
	for i := range rs {
		rs[i].Mode = lock.IS
	}
	return rs
}
