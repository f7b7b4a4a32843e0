package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// next returns the next value of a Watch.
func next(t *testing.T, pull func() (lifecycle.ChangedObject, error, bool)) lifecycle.ChangedObject {
	t.Helper()
	changed, err, ok := pull()
	require.True(t, ok, "Watch has ended")
	require.NoError(t, err)
	return changed
}

// watching returns a manager and its Watch.
func watching(t *testing.T, store lifecycle.Store) (*sizedManager, func() (lifecycle.ChangedObject, error, bool)) {
	m := lifecycle.Must(sizedVM, store, nil)
	pull, stop := iter.Pull2(lifecycle.Watch(t.Context(), m))
	t.Cleanup(stop)
	return m, pull
}

func TestWatchReportsChangesAndRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, pull := watching(t, lifecycle.NewMemoryStore())
		create(t, m, "a", "create", user, size{})
		require.Equal(t, lifecycle.ChangedObject{ID: "a", Sequence: 1}, next(t, pull))
		fire(t, m, "a", "done", agent, nil)
		require.Equal(t, lifecycle.ChangedObject{ID: "a", Sequence: 2}, next(t, pull))
		override(t, m, "a", "None", "test", "a test", nil)
		require.Equal(t, lifecycle.ChangedObject{ID: "a", Sequence: 3}, next(t, pull))
		rows := rowsOf(t, m, "a", 2, 0)
		require.Equal(t, "None", rows[0].To)
	})
}

// A change between the call of Watch and the range is not missed, and neither is one
// between the list and the range.
func TestWatchBeginsAtItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
		ready(t, m, "past")
		time.Sleep(time.Minute)
		changes := lifecycle.Watch(t.Context(), m)
		ready(t, m, "a")
		time.Sleep(time.Minute)
		for changed, err := range changes {
			require.NoError(t, err)
			require.Equal(t, lifecycle.ChangedObject{ID: "a", Sequence: 2}, changed)
			break
		}
	})
}

// Another manager over the same memory store wakes Watch and Await without a wait; over
// a store that cannot wake, they look after a second or a call of Wake.
func TestWatchAndAwaitWakeAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		wrap bool // the managers do not know that the store is in memory
		wake lifecycle.Key
		most time.Duration
	}{
		"memory":           {},
		"polling":          {wrap: true, most: time.Second},
		"Wake for object":  {wrap: true, wake: lifecycle.Key{Machine: "vm", ID: "a"}},
		"Wake for machine": {wrap: true, wake: lifecycle.Key{Machine: "vm"}},
		"Wake for all":     {wrap: true, wake: lifecycle.Key{ID: "?"}},
		"Wake for another": {wrap: true, wake: lifecycle.Key{Machine: "Other"}, most: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store lifecycle.Store = lifecycle.NewMemoryStore()
				if test.wrap {
					store = &hooked{MemoryStore: lifecycle.NewMemoryStore()}
				}
				m, pull := watching(t, store)
				other := lifecycle.Must(sizedVM, store, nil)
				create(t, other, "first", "create", user, size{})
				next(t, pull)
				time.Sleep(2*time.Second + time.Millisecond)
				var watched, awaited time.Duration
				start := time.Now()
				var group errgroup.Group
				group.Go(func() error {
					next(t, pull)
					watched = time.Since(start)
					return nil
				})
				group.Go(func() error {
					_, err := lifecycle.Await(t.Context(), m, "a", func(r lifecycle.Record[state, size]) bool { return r.Sequence > 0 })
					awaited = time.Since(start)
					return err
				})
				synctest.Wait()
				time.Sleep(200 * time.Millisecond) // the pause between two looks is over
				start = time.Now()
				create(t, other, "a", "create", user, size{})
				if test.wake != (lifecycle.Key{}) {
					lifecycle.Wake(test.wake, m)
				}
				require.NoError(t, group.Wait())
				if test.most == 0 {
					require.Zero(t, watched)
					require.Zero(t, awaited)
					return
				}
				require.Positive(t, watched)
				require.LessOrEqual(t, watched, test.most)
				require.LessOrEqual(t, awaited, test.most)
			})
		})
	}
}

// Every change is reported to a reader that is slow, after all changes have ended, and
// no sequence number comes twice.
func TestWatchLosesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		objects, writes := rapid.IntRange(1, 5).Draw(rt, "objects"), rapid.IntRange(1, 40).Draw(rt, "writes")
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
			ctx, cancel := context.WithCancel(t.Context())
			want := map[string]uint64{}
			var writer errgroup.Group
			writer.Go(func() error {
				defer cancel()
				for range writes {
					id := fmt.Sprint("vm", random.IntN(objects))
					rec, err := m.Create(ctx, id, "create", user, size{}, nil)
					if errors.Is(err, lifecycle.ErrExists) {
						rec, err = m.Override(ctx, id, "None", "test", "a test", nil)
						rec.Sequence = want[id] + 1
					}
					if err != nil {
						return err
					}
					want[id] = rec.Sequence
					time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
				time.Sleep(10 * time.Minute)
				return nil
			})
			slow := rand.New(rand.NewPCG(seed, 2))
			got := map[string]uint64{}
			for changed, err := range lifecycle.Watch(ctx, m) {
				if err != nil {
					break
				}
				require.Greater(t, changed.Sequence, got[changed.ID], "a sequence number again")
				got[changed.ID] = changed.Sequence
				time.Sleep(time.Duration(slow.IntN(30_000)) * time.Millisecond)
			}
			require.NoError(t, writer.Wait())
			require.Equal(t, want, got)
		})
	})
}

// More objects than a page, which change while the pages are read.
func TestWatchReadsAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, pull := watching(t, lifecycle.NewMemoryStore())
		const n = lifecycle.MaxPage + 2
		for i := range n {
			create(t, m, fmt.Sprintf("vm%04d", i), "create", user, size{})
		}
		require.Equal(t, "vm0000", next(t, pull).ID)
		fire(t, m, "vm0000", "done", agent, nil)
		fire(t, m, "vm1001", "done", agent, nil)
		for i := 1; i < n-1; i++ {
			require.Equal(t, lifecycle.ChangedObject{ID: fmt.Sprintf("vm%04d", i), Sequence: 1}, next(t, pull))
		}
		require.Equal(t, lifecycle.ChangedObject{ID: "vm1001", Sequence: 2}, next(t, pull))
		require.Equal(t, lifecycle.ChangedObject{ID: "vm0000", Sequence: 2}, next(t, pull))
	})
}

// recentFails is a store whose Recent fails while err is set.
type recentFails struct {
	*lifecycle.MemoryStore
	err    error
	within time.Duration // of the last call
}

func (s *recentFails) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	s.within = within
	if s.err != nil {
		return nil, s.err
	}
	return s.MemoryStore.Recent(ctx, machine, within, after, limit)
}

func TestWatchCoversAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recentFails{MemoryStore: lifecycle.NewMemoryStore(), err: lifecycle.ErrUnavailable}
		m, pull := watching(t, store)
		create(t, m, "a", "create", user, size{})
		for range 60 {
			_, err, ok := pull()
			require.True(t, ok)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
		}
		store.err = nil
		require.Equal(t, "a", next(t, pull).ID)
		require.Greater(t, store.within, time.Minute)
		create(t, m, "b", "create", user, size{})
		require.Equal(t, "b", next(t, pull).ID)
		require.Less(t, store.within, 22*time.Second, "the time before the last look is not read again")
	})
}

// What was yielded before a later page fails does not come again.
func TestWatchFailsBetweenPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recentFails{MemoryStore: lifecycle.NewMemoryStore()}
		m, pull := watching(t, store)
		for i := range lifecycle.MaxPage + 1 {
			create(t, m, fmt.Sprintf("vm%04d", i), "create", user, size{})
		}
		require.Equal(t, "vm0000", next(t, pull).ID)
		store.err = lifecycle.ErrUnavailable
		for range lifecycle.MaxPage - 1 {
			next(t, pull)
		}
		_, err, _ := pull()
		require.ErrorIs(t, err, lifecycle.ErrUnavailable)
		store.err = nil
		require.Equal(t, "vm1000", next(t, pull).ID)
	})
}

// slowRecent is a store whose Recent waits before it reads.
type slowRecent struct {
	*lifecycle.MemoryStore
	wait func() time.Duration
}

func (s *slowRecent) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	time.Sleep(s.wait())
	return s.MemoryStore.Recent(ctx, machine, within, after, limit)
}

// A look whose query waits in the store misses what the next look finds: it does not come again.
func TestWatchReportsOnceAfterASlowLook(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			store := &slowRecent{MemoryStore: lifecycle.NewMemoryStore()}
			store.wait = func() time.Duration { return time.Duration(random.IntN(4)/3) * 5 * time.Second }
			m := lifecycle.Must(sizedVM, store, nil)
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
			defer stop()
			var writer errgroup.Group
			writer.Go(func() error {
				for i := range 100 {
					if _, err := m.Create(ctx, fmt.Sprint("vm", i), "create", user, size{}, nil); err != nil {
						return err
					}
					time.Sleep(3 * time.Second)
				}
				return nil
			})
			got := map[string]int{}
			for changed, err := range lifecycle.Watch(ctx, m) {
				if err == nil {
					got[changed.ID]++
				}
			}
			require.NoError(t, writer.Wait())
			require.Len(t, got, 100)
			for id, times := range got {
				require.Equal(t, 1, times, id)
			}
		})
	}
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
		time.AfterFunc(time.Hour, cancel)
		n := 0
		for _, err := range lifecycle.Watch(ctx, m) {
			require.ErrorIs(t, err, context.Canceled)
			n++
		}
		require.Equal(t, 1, n, "values")
		require.Zero(t, lifecycle.Watching(m))

		bare := lifecycle.Must(sizedVM, lifecycle.Store(struct{ lifecycle.Store }{lifecycle.NewMemoryStore()}), nil)
		for _, err := range lifecycle.Watch(t.Context(), bare) {
			require.ErrorIs(t, err, errors.ErrUnsupported)
			require.EqualError(t, err, "lifecycle: watch vm: unsupported operation: the store is not a Follower")
			n++
		}
		require.Equal(t, 2, n, "values")
	})
}

// TestNothingWatches: Await and Watch leave nothing behind, however they end.
func TestNothingWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
		create(t, m, "a", "create", user, size{})
		is := func(want bool) func(lifecycle.Record[state, size]) bool {
			return func(lifecycle.Record[state, size]) bool {
				require.Equal(t, 1, lifecycle.Watching(m))
				return want
			}
		}
		_, err := lifecycle.Await(t.Context(), m, "a", is(true))
		require.NoError(t, err)
		require.Zero(t, lifecycle.Watching(m))

		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err = lifecycle.Await(ctx, m, "a", is(false))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, lifecycle.Watching(m))

		require.Panics(t, func() {
			_, _ = lifecycle.Await(t.Context(), m, "a", func(lifecycle.Record[state, size]) bool { panic("boom") })
		})
		require.Zero(t, lifecycle.Watching(m))

		create(t, m, "b", "create", user, size{})
		for range lifecycle.Watch(t.Context(), m) {
			require.Equal(t, 1, lifecycle.Watching(m))
			break
		}
		require.Zero(t, lifecycle.Watching(m))
	})
}
