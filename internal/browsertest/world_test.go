package browsertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// payload is what the objects of the worlds have.
type payload struct {
	Host  string   `json:"host"`
	CPUs  int      `json:"cpus"`
	Disks []string `json:"disks,omitempty"`
}

func show(p payload) any { return p }

// serve serves the page below a prefix, until the end of the test, and returns its address.
func serve(t *testing.T, config *inspect.Config) string {
	t.Helper()
	page, err := inspect.New(config)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/ops/inspect/", http.StripPrefix("/ops/inspect", page))
	server := httptest.NewServer(mux)
	t.Cleanup(func() { page.Close(); server.Close() })
	return server.URL + "/ops/inspect/"
}

// bind makes a machine of a published table, with guards that pass. Published tables name no
// reason why a state has no timeout.
func bind(t *testing.T, file string) *fsm.Machine[string, string, payload] {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	table, err := fsm.ParseTable(data)
	require.NoError(t, err)
	for i := range table.States {
		if table.States[i].Kind == fsm.Transitional {
			table.States[i].Manual = "the source names no timeout"
		}
	}
	guards := map[string]bool{}
	for _, row := range table.Rows {
		guards[row.Guard] = row.Guard != ""
	}
	var list []fsm.Guard[payload]
	for name, named := range guards {
		if named {
			list = append(list, fsm.When(name, func(context.Context, *payload, *payload) error { return nil }))
		}
	}
	machine, err := fsm.Bind[payload, string, string](table, list...)
	require.NoError(t, err)
	return machine
}

// wander makes objects and moves each at random, so that they are in many states.
func wander(t *testing.T, m *lifecycle.Manager[string, string, payload], table *fsm.Table, ids []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	actors := table.Actors
	for i, id := range ids {
		p := payload{Host: fmt.Sprintf("rack-%02d", i%20), CPUs: 1 << random.IntN(6), Disks: []string{"root", "data"}}
		_, err := m.Add(t.Context(), id, table.States[table.Initial].Name, actors[0], p, nil)
		require.NoError(t, err)
		for range random.IntN(40) {
			event, actor := table.Events[random.IntN(len(table.Events))], actors[random.IntN(len(actors))]
			_, err := m.Fire(t.Context(), id, event, actor, &lifecycle.Change[payload]{Reason: "exercise of the fleet"})
			if err != nil {
				require.ErrorAs(t, err, new(*fsm.TransitionError))
			}
		}
	}
}

func numbered(format string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf(format, i))
	}
	return ids
}

// published is a page with objects of a published table in most of its states.
func published(t *testing.T, file string, ids []string) string {
	machine := bind(t, file)
	m := lifecycle.Must(machine, lifecycle.NewMemoryStore(), nil)
	wander(t, m, machine.Table(), ids)
	return serve(t, &inspect.Config{Title: "Bare metal, region west", Machines: []inspect.Machine{inspect.Of(m, show)}})
}

const ironic = "../../fsm/testdata/tables/real/openstack-ironic-provision.json"

var vms = fsm.Must[payload](fsm.Spec[string, string]{
	Name: "vm", Title: "virtual machines", Initial: "stopped", Actors: []fsm.Actor{"user", "agent", "operator"},
	States: []fsm.State[string]{
		{Name: "stopped"},
		{Name: "starting", Kind: fsm.Transitional},
		{Name: "running"},
		{Name: "pausing", Kind: fsm.Transitional, Manual: "the agent reports"},
		{Name: "broken", Kind: fsm.Failed},
		{Name: "removed", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move("stopped", "start", "starting").By("user"),
		fsm.Move("starting", "started", "running").By("agent"),
		fsm.Move("starting", "failed", "broken").By("agent").After(time.Millisecond),
		fsm.Move("running", "pause", "pausing").By("user"),
		fsm.Move("pausing", "paused", "stopped").By("agent"),
		fsm.Move("running", "stop", "stopped").By("user"),
		fsm.Move("broken", "repair", "stopped").By("operator"),
		fsm.FromAny("remove", "removed").By("user").Excluding("starting", "pausing"),
	),
})

// many is a page with 10,000 objects at rest.
func many(t *testing.T) string {
	m := lifecycle.Must(vms, lifecycle.NewMemoryStore(), nil)
	for i := range 10_000 {
		state := []string{"stopped", "running", "running", "running", "broken"}[i%5]
		_, err := m.Add(t.Context(), fmt.Sprintf("vm-%05d", i), state, "user", payload{Host: "rack-01", CPUs: 4}, nil)
		require.NoError(t, err)
	}
	return serve(t, &inspect.Config{Title: "Ten thousand", Machines: []inspect.Machine{inspect.Of(m, nil)}})
}

// fleet is a page with stuck objects, owners, queues with actions and locks with
// waiters. Its store can fail.
func fleet(t *testing.T) (address string, store *outage) {
	store = &outage{MemoryStore: lifecycle.NewMemoryStore()}
	ctx, stop := context.WithCancel(context.Background())
	work := queue.Must(&queue.Config[lifecycle.Key]{Base: ctx, Classes: map[string]queue.Limit{
		"hosts": {MaxRunning: 3, Fair: true}, "hosts/rack-01": {MaxRunning: 2}, "images": {MaxRunning: 1},
	}})
	owner, err := lifecycle.Join(t.Context(), store, "controller-1", time.Minute)
	require.NoError(t, err)
	older := map[string]string{}
	for _, s := range vms.Table().States {
		older[s.Name] = s.Name
	}
	m := lifecycle.Must(vms, store, &lifecycle.Config[string]{
		Version: "2026-11", Older: []lifecycle.Version{{Name: "2026-10", States: older}}, Switch: true, Owner: owner, Queue: work, WorkerActor: "agent", Done: []string{"started", "paused"}, Failed: []string{"failed"},
	})
	t.Cleanup(func() { stop(); require.NoError(t, lifecycle.Drain(context.Background(), m)) })
	other := lifecycle.Must(vms, store, &lifecycle.Config[string]{Version: "2026-10"})
	for i, id := range numbered("vm-%03d", 60) {
		p := payload{Host: fmt.Sprintf("rack-%02d", i%4), CPUs: 2}
		_, err := other.Add(t.Context(), id, []string{"stopped", "running", "running", "broken"}[i%4], "user", p, nil)
		require.NoError(t, err)
	}
	for i := 0; i < 32; i += 4 {
		_, err := other.Fire(t.Context(), fmt.Sprintf("vm-%03d", i), "start", "user", &lifecycle.Change[payload]{Reason: "ticket 4711: restore the service after the power failure in room 2"})
		require.NoError(t, err)
	}
	for i := 1; i < 24; i += 4 {
		_, err := other.Fire(t.Context(), fmt.Sprintf("vm-%03d", i), "pause", "user", nil)
		require.NoError(t, err)
	}
	block := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for i := 2; i < 26; i += 4 {
		w := lifecycle.Func(block)
		w.Class = "hosts/rack-01"
		_, err := m.Do(t.Context(), fmt.Sprintf("vm-%03d", i), "pause", "user", w, nil)
		require.NoError(t, err)
	}
	require.NoError(t, work.PauseClass("images"))
	_, err = lifecycle.Join(t.Context(), store, "controller-2", time.Minute)
	require.NoError(t, err)
	_, err = lifecycle.Join(t.Context(), store, "controller-2", time.Minute)
	require.NoError(t, err)
	locks := lock.Must(nil)
	grant, err := locks.Lock(t.Context(), lock.Request{Path: lock.MustParse("/rack-01/host-3"), Mode: lock.X}, &lock.Options{Owner: "controller-1", Reason: "replace the disk of the host"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, grant.Unlock(context.Background())) })
	for _, path := range []string{"/rack-01", "/rack-01/host-3/vm-003"} {
		go func() {
			grant, err := locks.Lock(ctx, lock.Request{Path: lock.MustParse(path), Mode: lock.S}, &lock.Options{Owner: "backup"})
			if err == nil { // the end of the test has released the other grant first
				err = grant.Unlock(ctx)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				panic(err)
			}
		}()
	}
	require.Eventually(t, func() bool { return locks.Counts().Waiting == 2 }, time.Minute, time.Millisecond)
	return serve(t, &inspect.Config{
		Title: "Fleet", Machines: []inspect.Machine{inspect.Of(m, show)}, Locks: map[string]lock.Locker{"racks": locks},
	}), store
}

// outage is a store that fails on request.
type outage struct {
	*lifecycle.MemoryStore
	down atomic.Bool
}

func (o *outage) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if o.down.Load() {
		return lifecycle.StoredRecord{}, lifecycle.ErrUnavailable
	}
	return o.MemoryStore.Get(ctx, key)
}

func (o *outage) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if o.down.Load() {
		return nil, lifecycle.ErrUnavailable
	}
	return o.MemoryStore.List(ctx, q)
}

// hostile are names that break a page which does not escape them.
var hostile = []string{
	`<script>document.title="owned"</script>`,
	`"><img src=x onerror=alert(1)>`,
	`'; DROP TABLE vm; --`,
	"../../etc/passwd?state=x&id=y#z",
	"line one\nline two\ttab",
	"\u202eright to left\u202c, \u0645\u0631\u062d\u0628\u0627, \u4f60\u597d\u4e16\u754c",
	strings.Repeat("long", 40),
	"{{.}} ${7*7} %00 \\u0000 &lt;b&gt;",
	" leading and trailing ",
	"👩‍🚀 e\u0301 \u200b zero width",
}

// hostileWorld is a page whose title, machine, states, events, objects and payloads have
// hostile names.
func hostileWorld(t *testing.T) string {
	var states []fsm.State[string]
	var rows []fsm.Row[string, string]
	names := slices.DeleteFunc(slices.Clone(hostile), func(name string) bool { return strings.ContainsFunc(name, unicode.IsControl) })
	for i, name := range names {
		s := fsm.State[string]{Name: name, Kind: fsm.Kind(i % 3)}
		if s.Kind == fsm.Transitional {
			s.Manual = hostile[0]
		}
		states = append(states, s)
		rows = append(rows, fsm.Move(name, names[(i+3)%len(names)], names[(i+1)%len(names)]))
	}
	machine := fsm.Must[payload](fsm.Spec[string, string]{
		Name: hostile[0], Title: hostile[1], Initial: states[0].Name, Actors: []fsm.Actor{fsm.Actor(hostile[2])}, States: states, Rows: rows,
	})
	m := lifecycle.Must(machine, lifecycle.NewMemoryStore(), nil)
	for _, id := range hostile {
		_, err := m.Add(t.Context(), id, states[0].Name, fsm.Actor(hostile[2]), payload{Host: id, Disks: hostile}, &lifecycle.Change[payload]{Reason: id})
		require.NoError(t, err)
	}
	_, err := m.Fire(t.Context(), hostile[1], names[3], fsm.Actor(hostile[2]), &lifecycle.Change[payload]{Reason: hostile[5]})
	require.NoError(t, err)
	return serve(t, &inspect.Config{Title: hostile[7], Machines: []inspect.Machine{inspect.Of(m, show)}})
}

// pictures returns the addresses of the pictures of the published tables and of hostile
// names, by name.
func pictures(t *testing.T) map[string]string {
	list := map[string]string{}
	files, err := filepath.Glob("../../fsm/testdata/tables/real/*.json")
	require.NoError(t, err)
	for _, file := range files {
		machine := bind(t, file)
		m := lifecycle.Must(machine, lifecycle.NewMemoryStore(), nil)
		wander(t, m, machine.Table(), numbered("x-%d", 30))
		address := serve(t, &inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
		name := machine.Table().Name
		list[name] = address + "picture?machine=" + url.QueryEscape(name)
	}
	list["hostile"] = hostileWorld(t) + "picture?machine=" + url.QueryEscape(hostile[0])
	return list
}
