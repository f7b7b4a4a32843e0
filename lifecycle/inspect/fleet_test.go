package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// fleet returns a page of n VMs with payloads: every second one is in transition.
func fleet(t testing.TB, n, maxObjects int) (*inspect.Page, *vmManager) {
	m := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
	for i := range n {
		id := fmt.Sprintf("vm-%05d", i)
		_, err := m.Create(t.Context(), id, "create", "user", vm{Address: strings.Repeat("x", 1000)}, nil)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = m.Report(t.Context(), id, 1, "created", "worker", nil)
			require.NoError(t, err)
		}
	}
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}, MaxObjects: maxObjects})
	require.NoError(t, err)
	return page, m
}

// document returns the JSON document of a route.
func document[T any](t *testing.T, page *inspect.Page, url string) (doc T) {
	t.Helper()
	answer := ask(page, "GET", url, "Accept", "application/json")
	text := body(t, answer)
	require.Equal(t, 200, answer.StatusCode, text)
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	return doc
}

// largeRoutes are those whose answers could grow with the number of objects.
var largeRoutes = []string{
	"/", "/machine?machine=vm", "/objects?machine=vm&limit=1000", "/objects?machine=vm&stuck=1&limit=1000", "/picture.dot?machine=vm",
}

// TestFleet: 10,000 objects, half of them stuck, make pages of less than 1 MB.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, _ := fleet(t, 10_000, 0)
		time.Sleep(time.Hour)
		for _, url := range largeRoutes {
			for _, accept := range []string{"text/html", "application/json"} {
				require.Less(t, len(body(t, ask(page, "GET", url, "Accept", accept))), 1<<20, "%s as %s", url, accept)
			}
		}
		doc := document[inspect.MachinePage](t, page, "/machine?machine=vm")
		require.Equal(t, 10_000, doc.Objects)
		require.Equal(t, 5_000, doc.Transitional)
		require.Equal(t, lifecycle.MaxPage, doc.Stuck)
		require.False(t, doc.More)
		require.Len(t, doc.StuckObjects, 20)
		require.Len(t, doc.Oldest, 20)
		list := document[inspect.ObjectList](t, page, "/objects?machine=vm&stuck=1")
		require.Len(t, list.Objects, 100)
		require.True(t, list.More)
	})
}

// TestPages: all pages of a list together have every object once.
func TestPages(t *testing.T) {
	page, _ := fleet(t, 25, 0)
	for name, c := range map[string]struct {
		query string
		want  int
	}{
		"all states": {"", 25},
		"one state":  {"&state=running", 13},
		"two states": {"&state=running&state=creating", 25},
		"no objects": {"&state=failed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			for after := ""; ; {
				list := document[inspect.ObjectList](t, page, "/objects?machine=vm&limit=10&after="+after+c.query)
				require.Equal(t, 10, list.Limit)
				seen += len(list.Objects)
				if after = list.Next; after == "" {
					break
				}
			}
			require.Equal(t, c.want, seen)
		})
	}
}

// TestLastPage: a list that ends with its limit is the last page.
func TestLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, _ := fleet(t, 20, 0)
		time.Sleep(time.Hour)
		last := document[inspect.ObjectList](t, page, "/objects?machine=vm&limit=10&after=vm-00009")
		require.Len(t, last.Objects, 10)
		require.Empty(t, last.Next)
		stuck := document[inspect.ObjectList](t, page, "/objects?machine=vm&stuck=1&limit=10")
		require.Len(t, stuck.Objects, 10)
		require.False(t, stuck.More)
		stuck = document[inspect.ObjectList](t, page, "/objects?machine=vm&stuck=1&limit=9")
		require.Len(t, stuck.Objects, 9)
		require.True(t, stuck.More)
	})
}

// TestMaxObjects: an answer that does not count all objects shows that.
func TestMaxObjects(t *testing.T) {
	for most, more := range map[int]bool{1: true, 9: true, 10: false, 11: false} {
		t.Run(fmt.Sprintf("at most %d of 10", most), func(t *testing.T) {
			page, _ := fleet(t, 10, most)
			doc := document[inspect.Overview](t, page, "/").Machines[0]
			require.Equal(t, more, doc.More)
			require.Equal(t, min(most, 10), doc.Objects)
			sum := 0
			for _, s := range doc.States {
				sum += s.Count
			}
			require.Equal(t, doc.Objects, sum)
			overview, machine := body(t, ask(page, "GET", "/")), body(t, ask(page, "GET", "/machine?machine=vm"))
			require.Equal(t, len(doc.States), strings.Count(overview, `class="count">`))
			for _, s := range doc.States {
				require.Equal(t, more, strings.Contains(overview, fmt.Sprintf(`class="count">%d+<`, s.Count)), s.State)
			}
			require.Equal(t, more, strings.Contains(machine, fmt.Sprintf(`<th scope="row">without a name</th><td class="number">%d+<`, doc.Objects)))
			require.Equal(t, more, strings.Contains(machine, "There are more objects"))
			require.Equal(t, more && doc.Transitional > 0, strings.Contains(machine, "The counted transitional objects, the oldest first"))
			require.Equal(t, more, strings.Contains(body(t, ask(page, "GET", "/picture.dot?machine=vm")), " or more"))
		})
	}
}

// TestHistoryPages: the pages of a history have every row once, the newest first, also after
// the removal of the object.
func TestHistoryPages(t *testing.T) {
	for _, n := range []int{1, 50 - 1, 50, 50 + 1, 1100} {
		t.Run(fmt.Sprintf("%d rows", n), func(t *testing.T) {
			store := &lifecycle.MemoryStore{KeepHistory: -1}
			m := vms(store, lifecycle.Config[string]{})
			page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
			require.NoError(t, err)
			_, err = m.Create(t.Context(), "a", "create", "user", vm{}, nil)
			require.NoError(t, err)
			for range n - 1 {
				_, err = m.Override(t.Context(), "a", "running", "operator", "again", nil)
				require.NoError(t, err)
			}
			check := func(rows uint64) {
				t.Helper()
				next := rows
				for before := ""; ; {
					doc := document[inspect.ObjectPage](t, page, "/object?machine=vm&id=a"+before)
					for _, row := range doc.History {
						require.Equal(t, next, row.Sequence)
						next--
					}
					if doc.Before == 0 {
						break
					}
					before = fmt.Sprintf("&before=%d", doc.Before)
				}
				require.Zero(t, next)
				beyond := document[inspect.ObjectPage](t, page, fmt.Sprintf("/object?machine=vm&id=a&before=%d", rows+1000))
				require.Equal(t, rows, beyond.History[0].Sequence, "all rows are in front of a number that is too large")
			}
			check(uint64(n))
			_, err = m.Override(t.Context(), "a", "absent", "operator", "gone", nil)
			require.NoError(t, err)
			check(uint64(n) + 1)
		})
	}
}

// forgetful is a store without history.
type forgetful struct{ lifecycle.Store }

// TestNoHistory: a store without history is not an error.
func TestNoHistory(t *testing.T) {
	m := vms(forgetful{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{})
	_, err := m.Create(t.Context(), "a", "create", "user", vm{}, nil)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	require.True(t, document[inspect.ObjectPage](t, page, "/object?machine=vm&id=a").NoHistory)
	require.Contains(t, body(t, ask(page, "GET", "/object?machine=vm&id=a")), "keeps no history")
	require.Equal(t, 404, ask(page, "GET", "/object?machine=vm&id=b").StatusCode)
}

// noHistory is a store whose history cannot be read.
type noHistory struct{ *lifecycle.MemoryStore }

func (noHistory) History(context.Context, lifecycle.Key, uint64, int) ([]lifecycle.HistoryRow, error) {
	return nil, lifecycle.ErrUnavailable
}

// TestPartsThatCannotBeRead: a history, or the owners of one store, hide nothing else.
func TestPartsThatCannotBeRead(t *testing.T) {
	whole := lifecycle.NewMemoryStore()
	owner, err := lifecycle.Join(t.Context(), whole, "host-1", time.Hour)
	require.NoError(t, err)
	broken := &failing{MemoryStore: lifecycle.NewMemoryStore(), err: lifecycle.ErrUnavailable}
	m := vms(noHistory{whole}, lifecycle.Config[string]{Owner: owner})
	_, err = m.Create(t.Context(), "a", "create", "user", vm{}, nil)
	require.NoError(t, err)
	disks := lifecycle.Must(vmTable("disk"), broken, &lifecycle.Config[string]{})
	failed := 0
	page, err := inspect.New(&inspect.Config{
		Machines: []inspect.Machine{inspect.Of(disks, nil), inspect.Of(m, nil)},
		Failed:   func(context.Context, error) { failed++ },
	})
	require.NoError(t, err)
	object := document[inspect.ObjectPage](t, page, "/object?machine=vm&id=a")
	require.Equal(t, "creating", object.Explanation.State)
	require.Equal(t, "unavailable", object.HistoryProblem.Code)
	require.Equal(t, 1, failed)
	require.Contains(t, body(t, ask(page, "GET", "/object?machine=vm&id=a")), "<code>unavailable</code>")
	require.Equal(t, 503, ask(page, "GET", "/object?machine=vm&id=b").StatusCode)
	failed = 0
	owners := document[inspect.OwnerPage](t, page, "/owners")
	require.Equal(t, "host-1", owners.Owners[0].Name)
	require.Equal(t, "unavailable", owners.Problem.Code)
	require.Equal(t, 1, failed)
	require.Contains(t, body(t, ask(page, "GET", "/owners")), "<code>unavailable</code>")
}

// TestForeign: objects of another table's version are counted and shown, and hide no others.
func TestForeign(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	newer := vms(store, lifecycle.Config[string]{Version: "2"})
	_, err := newer.Create(t.Context(), "new", "create", "user", vm{}, nil)
	require.NoError(t, err)
	old := vms(store, lifecycle.Config[string]{Version: "1"})
	_, err = old.Create(t.Context(), "old", "create", "user", vm{}, nil)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(old, nil)}})
	require.NoError(t, err)
	doc := document[inspect.MachinePage](t, page, "/machine?machine=vm")
	require.Equal(t, []int{2, 1}, []int{doc.Objects, doc.Unreadable})
	require.Equal(t, []inspect.VersionCount{{"1", 1}, {"2", 1}}, doc.Versions)
	list := document[inspect.ObjectList](t, page, "/objects?machine=vm")
	require.Equal(t, "foreign-version", list.Objects[0].Problem.Code)
	require.Equal(t, "creating", list.Objects[1].State)
	object := document[inspect.ObjectPage](t, page, "/object?machine=vm&id=new")
	require.Equal(t, "foreign-version", object.Problem.Code)
	require.Len(t, object.History, 1)
	for _, url := range []string{"/", "/machine?machine=vm", "/objects?machine=vm", "/objects?machine=vm&stuck=1", "/object?machine=vm&id=new"} {
		require.Equal(t, 200, ask(page, "GET", url).StatusCode, url)
	}
}

// TestRedaction: the page has of a payload what the function of Of returns.
func TestRedaction(t *testing.T) {
	m := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
	_, err := m.Create(t.Context(), "a", "create", "user", vm{"10.0.0.7", "secret"}, nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		show func(vm) any
		want string
	}{
		"nothing":  {nil, ""},
		"redacted": {withoutPassword, `{"Address":"10.0.0.7"}`},
		"all":      {func(v vm) any { return v }, `{"Address":"10.0.0.7","Password":"secret"}`},
		"bad":      {func(vm) any { return func() {} }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, c.show)}})
			require.NoError(t, err)
			if c.want == "-" {
				require.Equal(t, 500, ask(page, "GET", "/object?machine=vm&id=a").StatusCode)
				return
			}
			payload := string(document[inspect.ObjectPage](t, page, "/object?machine=vm&id=a").Payload)
			if c.want == "" {
				require.Empty(t, payload)
			} else {
				require.JSONEq(t, c.want, payload)
			}
			require.Equal(t, name == "all", strings.Contains(body(t, ask(page, "GET", "/object?machine=vm&id=a")), "secret"))
			require.NotContains(t, body(t, ask(page, "GET", "/machine?machine=vm&format=json")), "secret")
		})
	}
}

// TestGuards: an explanation runs the guards; one that panics refuses.
func TestGuards(t *testing.T) {
	guard := fsm.When("quota", func(context.Context, *vm, *vm) error { panic("a guard") })
	m := lifecycle.Must(fsm.Must[vm](fsm.Spec[string, string]{
		Name: "vm", Initial: "a", Actors: []fsm.Actor{"user"}, States: []fsm.State[string]{{Name: "a"}, {Name: "b"}},
		Rows: fsm.Rows(fsm.Move("a", "go", "b").If(guard), fsm.Move("b", "back", "a")),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[string]{})
	_, err := m.Add(t.Context(), "x", "a", "user", vm{}, nil)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	require.Contains(t, body(t, ask(page, "GET", "/object?machine=vm&id=x")), "quota")
}

// slow is a store that answers when the context ends.
type slow struct{ *lifecycle.MemoryStore }

func (slow) List(ctx context.Context, _ lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	<-ctx.Done()
	return nil, lifecycle.Ended(ctx)
}

// TestTimeout: a store that does not answer does not hold up the page.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []error
		m := vms(slow{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{})
		page, err := inspect.New(&inspect.Config{
			Machines: []inspect.Machine{inspect.Of(m, nil)},
			Failed:   func(_ context.Context, err error) { failed = append(failed, err) },
		})
		require.NoError(t, err)
		for i, url := range []string{"/machine?machine=vm", "/objects?machine=vm", "/objects?machine=vm&stuck=1", "/picture.dot?machine=vm"} {
			begin := time.Now()
			answer := problem(t, ask(page, "GET", url+"&format=json"))
			require.Equal(t, 10*time.Second, time.Since(begin), url)
			require.Equal(t, "deadline", answer.Code, url)
			require.Equal(t, http.StatusServiceUnavailable, answer.Status, url)
			require.Equal(t, `inspect: the store of machine "vm" has not answered within 10s`, answer.Detail, url)
			require.ErrorIs(t, failed[i], context.DeadlineExceeded, url)
		}
	})
}

// TestTwoStores: owners of all stores are listed, one that is an owner in both stores once.
func TestTwoStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var machines []inspect.Machine
		for _, name := range []string{"vm", "disk"} {
			store := lifecycle.NewMemoryStore()
			for _, owner := range []string{"both", "only-" + name} {
				o, err := lifecycle.Join(t.Context(), store, owner, time.Hour)
				require.NoError(t, err)
				defer func() { require.NoError(t, o.Leave(t.Context())) }()
			}
			m := lifecycle.Must(vmTable(name), store, &lifecycle.Config[string]{})
			machines = append(machines, inspect.Of(m, nil))
		}
		page, err := inspect.New(&inspect.Config{Machines: machines})
		require.NoError(t, err)
		var names []string
		for _, o := range document[inspect.OwnerPage](t, page, "/owners").Owners {
			names = append(names, o.Name)
		}
		require.Equal(t, []string{"both", "only-disk", "only-vm"}, names)
		require.Len(t, document[inspect.Overview](t, page, "/").Queues, 2)
	})
}

// TestQueueNames: a queue that the config names is not listed a second time.
func TestQueueNames(t *testing.T) {
	q := queue.Must[lifecycle.Key](nil)
	m := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{Queue: q})
	page, err := inspect.New(&inspect.Config{
		Machines: []inspect.Machine{inspect.Of(m, nil)}, Queues: map[string]inspect.Queue{"work": inspect.OfQueue(q)},
	})
	require.NoError(t, err)
	queues := document[inspect.QueuePage](t, page, "/queues").Queues
	require.Len(t, queues, 1)
	require.Equal(t, "work", queues[0].Name)
}

// counted is a store that takes a second for a page, and counts the pages.
type counted struct {
	*lifecycle.MemoryStore
	pages atomic.Int32
}

func (s *counted) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if q.Machine == "vm" && q.States == nil && q.NotOwnedBy == nil {
		s.pages.Add(1)
		time.Sleep(time.Second)
	}
	return s.MemoryStore.List(ctx, q)
}

// TestCountsAreShared: many open pages cost a store no more than one.
func TestCountsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{MemoryStore: lifecycle.NewMemoryStore()}
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)}})
		require.NoError(t, err)
		var viewers sync.WaitGroup
		for range 100 {
			viewers.Go(func() { ask(page, "GET", "/machine?machine=vm") })
		}
		viewers.Wait()
		require.EqualValues(t, 1, store.pages.Load())
		time.Sleep(10 * time.Second)
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/machine?machine=vm", nil).WithContext(ctx))
		require.Equal(t, 200, ask(page, "GET", "/machine?machine=vm").StatusCode)
		require.EqualValues(t, 2, store.pages.Load(), "the count of a client that has left is used")
	})
}

// TestOneSlowStore: the overview shows the other stores, and the slow one is not read again
// at once.
func TestOneSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := lifecycle.Must(vmTable("disk"), lifecycle.NewMemoryStore(), &lifecycle.Config[string]{})
		_, err := disks.Create(t.Context(), "a", "create", "user", vm{}, nil)
		require.NoError(t, err)
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{
			inspect.Of(vms(slow{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{}), nil), inspect.Of(disks, nil),
		}})
		require.NoError(t, err)
		begin := time.Now()
		doc := document[inspect.Overview](t, page, "/")
		require.Equal(t, "deadline", doc.Machines[0].Problem.Code)
		require.Equal(t, `inspect: the store of machine "vm" has not answered within 10s`, doc.Machines[0].Problem.Detail)
		require.Nil(t, doc.Machines[1].Problem)
		require.Equal(t, 1, doc.Machines[1].Objects)
		require.Equal(t, 10*time.Second, time.Since(begin))
		require.Equal(t, "deadline", problem(t, ask(page, "GET", "/machine?machine=vm&format=json")).Code)
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}

// silent is a lock tree that answers when the context ends.
type silent struct{ lock.Locker }

func (silent) Snapshot(ctx context.Context) (lock.Snapshot, error) {
	<-ctx.Done()
	return lock.Snapshot{}, lock.Ended(ctx)
}

// TestManyHolders: the page of the locks does not hide that it has the first holders only.
func TestManyHolders(t *testing.T) {
	tree := lock.Must(nil)
	page, err := inspect.New(&inspect.Config{Locks: map[string]lock.Locker{"racks": tree}})
	require.NoError(t, err)
	for i := range inspect.ShownLanes + 1 {
		_, err = tree.Try(lock.MustParse(fmt.Sprint("/", i)), lock.X)
		require.NoError(t, err)
	}
	require.Contains(t, body(t, ask(page, "GET", "/locks")), fmt.Sprintf("order of their arrival: the first %d</caption>", inspect.ShownLanes))
}

// snapshots is a lock tree of another process: it counts only by a Snapshot, which takes a
// second.
type snapshots struct {
	lock.Locker
	read atomic.Int32
}

func (s *snapshots) Snapshot(context.Context) (lock.Snapshot, error) {
	time.Sleep(time.Second)
	return lock.Snapshot{Held: int(s.read.Add(1))}, nil
}

// TestLockCountsAreShared: many open overviews cost a lock tree no more than one.
func TestLockCountsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := &snapshots{}
		page, err := inspect.New(&inspect.Config{Locks: map[string]lock.Locker{"racks": tree}})
		require.NoError(t, err)
		var viewers sync.WaitGroup
		for range 100 {
			viewers.Go(func() { ask(page, "GET", "/") })
		}
		viewers.Wait()
		require.EqualValues(t, 1, tree.read.Load())
		require.Equal(t, 1, document[inspect.Overview](t, page, "/").Locks[0].Held)
		require.Equal(t, 2, document[inspect.LockPage](t, page, "/locks").Locks[0].Held, "the page of the locks reads them")
		time.Sleep(10 * time.Second)
		require.Equal(t, 3, document[inspect.Overview](t, page, "/").Locks[0].Held)
	})
}

// TestSilentParts: a store or a lock tree that does not answer leaves the time of the others.
func TestSilentParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner, err := lifecycle.Join(t.Context(), store, "host-1", time.Hour)
		require.NoError(t, err)
		disks := lifecycle.Must(vmTable("disk"), store, &lifecycle.Config[string]{})
		page, err := inspect.New(&inspect.Config{
			Machines: []inspect.Machine{
				inspect.Of(vms(slow{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{}), nil), inspect.Of(disks, nil),
			},
			Locks: map[string]lock.Locker{"bad": silent{}, "good": lock.Must(nil)},
		})
		require.NoError(t, err)
		for _, url := range []string{"/", "/owners"} {
			doc := document[inspect.OwnerPage](t, page, url)
			require.Len(t, doc.Owners, 1, url)
		}
		for _, url := range []string{"/", "/locks"} {
			doc := document[inspect.LockPage](t, page, url)
			require.Equal(t, "deadline", doc.Locks[0].Problem.Code, url)
			require.Equal(t, `inspect: the lock tree "bad" has not answered within 10s`, doc.Locks[0].Problem.Detail, url)
			require.Nil(t, doc.Locks[1].Problem, url)
		}
		require.NoError(t, owner.Leave(t.Context()))
	})
}

// lists is a store that lists objects and cannot read one.
type lists struct{ *lifecycle.MemoryStore }

func (lists) Get(context.Context, lifecycle.Key) (lifecycle.StoredRecord, error) {
	return lifecycle.StoredRecord{}, lifecycle.ErrUnavailable
}

// TestNotExplained: the page of a machine shows stuck objects that it cannot explain.
func TestNotExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lists{lifecycle.NewMemoryStore()}
		healthy := vms(store.MemoryStore, lifecycle.Config[string]{})
		for _, id := range []string{"a", "b"} {
			_, err := healthy.Create(t.Context(), id, "create", "user", vm{}, nil)
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		failed := 0
		page, err := inspect.New(&inspect.Config{
			Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)},
			Failed:   func(context.Context, error) { failed++ },
		})
		require.NoError(t, err)
		doc := document[inspect.MachinePage](t, page, "/machine?machine=vm")
		require.Equal(t, 2, doc.Objects)
		require.Len(t, doc.StuckObjects, 2)
		require.Equal(t, "creating", doc.StuckObjects[0].State)
		require.Equal(t, "unavailable", doc.StuckObjects[0].Problem.Code)
		require.Equal(t, 1, failed)
		require.NotContains(t, body(t, ask(page, "GET", "/objects?machine=vm&stuck=1")), "unreadable")
	})
}

// unread is a lock tree that cannot be read.
type unread struct{ lock.Locker }

func (unread) Snapshot(context.Context) (lock.Snapshot, error) {
	return lock.Snapshot{}, lifecycle.ErrUnavailable
}

// TestUnreadLock: a lock tree that cannot be read does not hide the others.
func TestUnreadLock(t *testing.T) {
	page, err := inspect.New(&inspect.Config{Locks: map[string]lock.Locker{"bad": unread{lock.Must(nil)}, "good": lock.Must(nil)}})
	require.NoError(t, err)
	for _, url := range []string{"/", "/locks"} {
		doc := document[inspect.LockPage](t, page, url)
		require.Equal(t, "unavailable", doc.Locks[0].Problem.Code, url)
		require.Nil(t, doc.Locks[1].Problem, url)
		require.Contains(t, body(t, ask(page, "GET", url)), "store is unavailable", url)
	}
}

// TestLocksOverview: the overview has no holders, also of a lock driver without counts.
func TestLocksOverview(t *testing.T) {
	tree := lock.Must(nil)
	_, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/shop"), Mode: lock.X}, nil)
	require.NoError(t, err)
	driver := struct{ lock.Locker }{tree}
	page, err := inspect.New(&inspect.Config{Locks: map[string]lock.Locker{"driver": driver}})
	require.NoError(t, err)
	doc := document[inspect.Overview](t, page, "/").Locks[0]
	require.Equal(t, 1, doc.Held)
	require.Empty(t, doc.Holders)
	require.Len(t, document[inspect.LockPage](t, page, "/locks").Locks[0].Holders, 1)
}

// unlisted is a store whose lists panic.
type unlisted struct{ *lifecycle.MemoryStore }

func (unlisted) List(context.Context, lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	panic(errBoom)
}

// TestPanic: a panic of a store continues in the goroutine of the request, where net/http
// expects it, also if the page reads several stores at once.
func TestPanic(t *testing.T) {
	m := vms(unlisted{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{})
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	require.PanicsWithValue(t, errBoom, func() { ask(page, "GET", "/") })
}

// TestAges: a page shows an age in the greatest unit of which there are at least two.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
		_, err := m.Create(t.Context(), "a", "create", "user", vm{}, nil)
		require.NoError(t, err)
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
		require.NoError(t, err)
		began := time.Now()
		for _, age := range []struct {
			time time.Duration
			text string
		}{
			{119 * time.Second, "119 s ago"},
			{2 * time.Minute, "2 min ago"},
			{119 * time.Minute, "119 min ago"},
			{2 * time.Hour, "2 h ago"},
			{47 * time.Hour, "47 h ago"},
			{48 * time.Hour, "2 d ago"},
		} {
			time.Sleep(time.Until(began.Add(age.time)))
			require.Contains(t, body(t, ask(page, "GET", "/objects?machine=vm")), ">"+age.text+"<")
		}
	})
}
