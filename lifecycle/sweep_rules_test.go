package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// picky is a store that fails some reads, and counts the records that it returns.
type picky struct {
	*lifecycle.MemoryStore
	list func(lifecycle.Query) error // nil: none fails
	get  func(lifecycle.Key) error
	read map[string]int // by machine
}

func (s *picky) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if s.list != nil {
		if err := s.list(q); err != nil {
			return nil, err
		}
	}
	found, err := s.MemoryStore.List(ctx, q)
	if s.read != nil {
		s.read[q.Machine] += len(found)
	}
	return found, err
}

func (s *picky) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.get != nil {
		if err := s.get(key); err != nil {
			return lifecycle.StoredRecord{}, err
		}
	}
	return s.MemoryStore.Get(ctx, key)
}

// TestSweepFailsInEachStep: one read of a sweep or of Stuck fails, and its error is returned.
func TestSweepFailsInEachStep(t *testing.T) {
	lists := func(matches func(lifecycle.Query) bool) func(*picky) {
		return func(s *picky) {
			s.list = func(q lifecycle.Query) error {
				if matches(q) {
					return errBoom
				}
				return nil
			}
		}
	}
	gets := func(key lifecycle.Key) func(*picky) {
		return func(s *picky) {
			s.get = func(k lifecycle.Key) error {
				if k == key {
					return errBoom
				}
				return nil
			}
		}
	}
	const owners = "interlock.owner"
	for name, c := range map[string]struct {
		fail  func(*picky)
		stuck bool // Stuck fails too
	}{
		"living owners":    {lists(func(q lifecycle.Query) bool { return q.Machine == owners && !q.Overdue }), true},
		"forgotten owners": {lists(func(q lifecycle.Query) bool { return q.Machine == owners && q.Overdue }), false},
		"running work":     {gets(lifecycle.Key{Machine: "work-vm", ID: "a"}), false},
		"orphans":          {lists(func(q lifecycle.Query) bool { return q.NotOwnedBy != nil }), true},
		"owner of orphan":  {gets(ownerKey("gone")), true},
		"overdue":          {lists(func(q lifecycle.Query) bool { return q.Machine != owners && q.Overdue }), true},
		"ownerless":        {lists(func(q lifecycle.Query) bool { return q.Unowned }), true},
		"undated":          {lists(func(q lifecycle.Query) bool { return q.UnchangedFor > 0 }), true},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &picky{MemoryStore: lifecycle.NewMemoryStore()}
			m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", time.Hour)})
			stopped(t, m, "a")
			ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
			plant(t, store.MemoryStore, lifecycle.StoredRecord{
				Key: lifecycle.Key{Machine: "work-vm", ID: "b"}, State: "stopping", Origin: "running", Owner: "gone", Epoch: 1,
			})
			synctest.Wait() // until the work has begun
			c.fail(store)
			if c.stuck {
				_, err := lifecycle.Stuck(t.Context(), m, 0)
				require.ErrorIs(t, err, errBoom)
			}
			_, err := m.Sweep(t.Context())
			require.ErrorIs(t, err, errBoom)
			store.list, store.get = nil, nil
			wait(t, ticket)
		})
	}
}

// TestSweepWithoutAge: a store that cannot select by age finds no undated objects. The sweep
// goes on.
func TestSweepWithoutAge(t *testing.T) {
	store := &picky{MemoryStore: lifecycle.NewMemoryStore(), list: func(q lifecycle.Query) error {
		if q.UnchangedFor > 0 {
			return fmt.Errorf("%w: no column", errors.ErrUnsupported)
		}
		return nil
	}}
	require.Empty(t, sweep(t, workers(store, lifecycle.Config[event]{})))
}

// TestSweepReadsNoBusyObjects: a sweep reads no objects whose owners are alive and whose
// deadlines have not passed.
func TestSweepReadsNoBusyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &picky{MemoryStore: lifecycle.NewMemoryStore(), read: map[string]int{}}
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", time.Hour)})
		var tickets []*lifecycle.Ticket[state, size]
		for i := range 10 {
			id := fmt.Sprint("vm-", i)
			stopped(t, m, id)
			tickets = append(tickets, do(t, m, id, "start", user, sleeping(time.Second), nil))
		}
		synctest.Wait()
		require.Empty(t, sweep(t, m))
		require.Empty(t, stuck(t, m, 0))
		require.Zero(t, store.read["work-vm"])
		for _, ticket := range tickets {
			wait(t, ticket)
		}
	})
}

// TestSweepPagesPastTheUnmoved: more objects than a page holds cannot be moved. The sweep
// finds each of them once.
func TestSweepPagesPastTheUnmoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(lease, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
			BeforeCommit: func(_ context.Context, c *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				if c.From != "" {
					return nil, errBoom
				}
				return nil, nil
			},
		})
		for i := range lifecycle.MaxPage + 1 {
			add(t, m, fmt.Sprintf("l-%05d", i), user, size{})
		}
		time.Sleep(time.Minute + 1)
		found := sweep(t, m)
		require.Len(t, found, lifecycle.MaxPage+1)
		require.Equal(t, lifecycle.NotMoved, found[lifecycle.MaxPage].Resolution)
		require.Equal(t, fmt.Sprintf("l-%05d", lifecycle.MaxPage), found[lifecycle.MaxPage].ID)
	})
}

// TestSweepResults: what a result has of an object that was moved, and of one that is foreign.
// The event of the sweep has how long it took.
func TestSweepResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, took := &hooked{MemoryStore: lifecycle.NewMemoryStore()}, time.Duration(0)
		m := lifecycle.Must(lease, store, &lifecycle.Config[event]{Version: "1", Observer: lifecycle.Observer{
			Swept: func(_ context.Context, s lifecycle.Swept) { took = s.Took },
		}})
		add(t, m, "a", user, size{})
		rec := get(t, m, "a")
		b := storedAt(t, store, lifecycle.Key{Machine: "lease", ID: "a"})
		b.ID, b.Version, b.Revision = "b", "2", ""
		b.Revision = storedAt(t, store, lifecycle.Key{Machine: "lease", ID: "b"}).Revision
		require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{
			{Expect: b.Revision, To: b, Timeout: time.Minute},
		}}))
		time.Sleep(time.Minute + 1)
		store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
			time.Sleep(time.Second)
			return write()
		}
		found := sweep(t, m)
		require.Equal(t, time.Second, took)
		require.Len(t, found, 2)
		cause := "deadline " + rec.Deadline.UTC().Format(time.RFC3339) + " has passed"
		require.Equal(t, lifecycle.SweepResult{
			Key: lifecycle.Key{Machine: "lease", ID: "a"}, Resolution: lifecycle.Moved, From: "Starting", To: "Active", Event: "late", Actor: fsm.Sweeper,
			Operation: 1, Overdue: true, Cause: cause,
		}, found[0])
		require.ErrorIs(t, found[1].Err, lifecycle.ErrForeign)
		require.Equal(t, []any{lifecycle.NotMoved, "Starting", true, cause}, []any{found[1].Resolution, found[1].From, found[1].Overdue, found[1].Cause})
	})
}

// TestRunWithTheLongestInterval: Run does not sweep before the interval has passed, and ends
// with the context.
func TestRunWithTheLongestInterval(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*365*24*time.Hour)
			defer cancel()
			require.NoError(t, lifecycle.Run(ctx, math.MaxInt64, nil, sweeps(func() error {
				t.Error("it sweeps")
				cancel()
				return nil
			})))
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		})
	}
}

// undatedJobs is a table with several timeouts. The rows of the state busy, whose timeouts are
// of two origins, are in this order. The state quick, which has the shortest one, may lack.
func undatedJobs(longerFirst, quick bool) *fsm.Machine[state, event, size] {
	states := []fsm.State[state]{
		{Name: "new"}, {Name: "old"}, {Name: "busy", Kind: fsm.Transitional}, {Name: "slow", Kind: fsm.Transitional},
	}
	rows := fsm.Rows(
		fsm.Move[state, event]("busy", "late", "old").Of("old").After(2*time.Minute),
		fsm.Move[state, event]("busy", "late", "new").Of("new").After(3*time.Minute),
		fsm.Move[state, event]("new", "age", "old"),
		fsm.Move[state, event]("new", "work", "busy").AlsoFrom("old"),
		fsm.Move[state, event]("new", "rest", "slow"),
		fsm.Return[state, event]("slow", "late").After(4*time.Minute),
	)
	if longerFirst {
		rows[0], rows[1] = rows[1], rows[0]
	}
	if quick {
		states = append(states, fsm.State[state]{Name: "quick", Kind: fsm.Transitional})
		rows = append(rows, fsm.Move[state, event]("new", "hurry", "quick"), fsm.Return[state, event]("quick", "late").After(time.Minute))
	}
	return fsm.Must[size](fsm.Spec[state, event]{
		Name: "undated", Initial: "new", Actors: []fsm.Actor{user}, States: states, Rows: rows,
	})
}

// TestUndatedInAnyOrder: an object without a deadline is found when the timeout of its own
// state and origin has passed, whatever the order of states and rows is.
func TestUndatedInAnyOrder(t *testing.T) {
	for _, longerFirst := range []bool{false, true} {
		for _, quick := range []bool{false, true} {
			inBubble(t, fmt.Sprint("the longer timeout first: ", longerFirst, ", with a short one: ", quick), func(t *testing.T) {
				store := lifecycle.NewMemoryStore()
				m := lifecycle.Must(undatedJobs(longerFirst, quick), store, nil)
				records := [][3]string{{"quick", "quick", "new"}, {"two", "busy", "old"}, {"three", "busy", "new"}, {"four", "slow", "new"}}
				if !quick {
					records[0] = [3]string{}
				}
				for _, r := range records {
					if r[0] != "" {
						plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "undated", ID: r[0]}, State: r[1], Origin: r[2]})
					}
				}
				for _, r := range records { // a minute each
					time.Sleep(time.Minute + time.Second)
					found := ""
					for _, result := range sweep(t, m) {
						found += result.ID
					}
					require.Equal(t, r[0], found)
				}
			})
		}
	}
}

// TestUndatedOfAnotherOrigin: the table has a timeout for a state and another origin. An
// object without one, whose owner is alive, is not stuck.
func TestUndatedOfAnotherOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := lifecycle.Must(jobs("an operator starts new ones"), store, nil)
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "job", ID: "n"}, State: "busy", Origin: "new", Owner: "p", Epoch: join(t, store, "p", 1000*time.Hour).Epoch(),
		})
		time.Sleep(2 * time.Hour)
		require.Empty(t, sweep(t, m))
	})
}

// TestObservedSecondDeadline: Observe returns the event of another deadline row than the one
// that is due. The sweep fires that event.
func TestObservedSecondDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
			Name: "twice", Initial: "idle", Actors: []fsm.Actor{user},
			States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional}, {Name: "broken", Kind: fsm.Failed}},
			Rows: fsm.Rows(
				fsm.Move[state, event]("idle", "go", "busy").By(user),
				fsm.Return[state, event]("busy", "late").After(time.Minute),
				fsm.Move[state, event]("busy", "expire", "broken").After(time.Hour),
				fsm.Move[state, event]("broken", "mend", "idle").By(user),
			),
		}), lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
			Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "expire", fsm.Sweeper, nil
			},
		})
		add(t, m, "a", user, size{})
		fire(t, m, "a", "go", user, nil)
		time.Sleep(time.Minute + 1)
		require.Equal(t, lifecycle.Moved, sweep(t, m)[0].Resolution)
		require.Equal(t, state("broken"), get(t, m, "a").State)
	})
}

// A sweep reports a transitional object whose origin it does not know, and leaves an object at
// rest alone that still has an owner: other programs have written them.
func TestSweepOfOddRecords(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	put := func(id, state, origin, owner string, epoch uint64) {
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "work-vm", ID: id}, State: state, Origin: origin, Owner: owner, Epoch: epoch,
		})
	}
	put("rests", "stopped", "stopped", "dead", 1)
	put("of an owner", "starting", "flying", "dead", 3)
	put("unknown", "starting", "flying", "", 0)
	m := workers(store, lifecycle.Config[event]{})
	before := all(t, store, "work-vm", "rests", "of an owner", "unknown")
	found := sweep(t, m)
	require.Len(t, found, 2)
	for i, id := range []string{"of an owner", "unknown"} {
		require.Equal(t, id, found[i].ID)
		require.Equal(t, lifecycle.NotMoved, found[i].Resolution)
		require.ErrorIs(t, found[i].Err, lifecycle.ErrForeign)
		require.Equal(t, id == "of an owner", found[i].OwnerDead)
	}
	require.Equal(t, before, all(t, store, "work-vm", "rests", "of an owner", "unknown"))
}

// A guard lets the table ignore the deadline, and Config.Observe may return an event that the
// table ignores. Explain returns the first, and a sweep reports that the object has not moved.
func TestSweepIsIgnored(t *testing.T) {
	open := func(redo bool) *fsm.Machine[state, event, size] {
		late := fsm.Return[state, event]("busy", "late").After(time.Minute)
		if redo {
			late = fsm.Redo[state, event]("busy", "late", time.Minute)
		}
		return fsm.Must[size](fsm.Spec[state, event]{
			Name: "kept", Initial: "open", Actors: []fsm.Actor{user},
			States: []fsm.State[state]{{Name: "open"}, {Name: "busy", Kind: fsm.Transitional}},
			Rows: fsm.Rows(
				fsm.Move[state, event]("open", "work", "busy").By(user),
				fsm.Move[state, event]("busy", "done", "open").By(user),
				fsm.Ignore[state, event]("busy", "progress").By(user),
				fsm.Ignore[state, event]("busy", "late").If(fsm.When("is kept", func(_ context.Context, _, p *size) error { return tooLarge(p.N) })),
				late,
			),
		})
	}
	for name, c := range map[string]struct {
		redo, work, observe bool
		n                   int // of the guard: more than 100 is not kept
		ignored             string
	}{
		"by the deadline":      {ignored: "late"},
		"of work to be redone": {redo: true, work: true, ignored: "late"},
		"by Observe":           {observe: true, n: 101, ignored: "progress"},
	} {
		inBubble(t, name, func(t *testing.T) {
			config := &lifecycle.Config[event]{
				WorkerActor: user, Done: []event{"done"},
				Handlers: map[string]lifecycle.Handler{"hang": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }},
			}
			if c.observe {
				config.Observe = func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) { return "progress", user, nil }
			}
			m := lifecycle.Must(open(c.redo), lifecycle.NewMemoryStore(), config)
			_, err := m.Add(t.Context(), "a", "open", user, size{N: c.n}, nil)
			require.NoError(t, err)
			if c.work {
				ticket := do(t, m, "a", "work", user, lifecycle.Named("hang", nil), nil)
				defer ticket.Cancel(nil)
			} else {
				fire(t, m, "a", "work", user, nil)
			}
			synctest.Wait()
			if !c.observe {
				require.Contains(t, explain(t, m, "a").Then, "the sweeper fires late: the table ignores it")
			}
			before := get(t, m, "a")
			time.Sleep(time.Hour)
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
			require.ErrorIs(t, found[0].Err, fsm.ErrNotAllowed)
			require.ErrorContains(t, found[0].Err, "the table ignores "+c.ignored)
			require.Equal(t, before, get(t, m, "a"))
		})
	}
}
