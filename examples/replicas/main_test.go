package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun lets each fault happen once, and several times with INTERLOCK_LONG=1.
func TestRun(t *testing.T) {
	*addr, *serverURL, *objects, *duration, *ttl = "127.0.0.1:0", "", 60, 0, 2*time.Second
	if os.Getenv("INTERLOCK_LONG") != "" { // more than 10,000 orders with the fence
		*objects, *duration, *least = 2000, 5*time.Minute, 21_000
	}
	out := &lines{}
	dead := make(chan bool)
	go func() { dead <- out.deadOwner() }()
	err := run(t.Context(), out, t.TempDir())
	out.end()
	seen := <-dead
	t.Logf("\n%s", out.text())
	if errors.Is(err, private.ErrMissing) {
		require.NotEqual(t, "1", os.Getenv("REQUIRE_ENGINES"), "%v", err)
		t.Skip(err)
	}
	require.NoError(t, err)
	require.True(t, seen, "the page did not show the dead owner of a replica that was struck")
	for _, line := range []string{
		`a: killed by SIGKILL, with \d+ operations`,
		`b: paused by SIGSTOP, with \d+ operations`,
		`c: cut off from the database, with \d+ operations`,
		`orders with the fence: \d+ executed, [1-9]\d* late ones refused, 0 late ones executed`,
		`orders of the control: \d+ executed, [1-9]\d* late ones among them`,
		`\d+ attempts without an answer, [1-9]\d* answers that repeat a lost one`,
		`verdict: good`,
	} {
		require.Regexp(t, line, out.text())
	}
}

// TestNoDatabase: a run without a verdict is an error, and leaves nothing.
func TestNoDatabase(t *testing.T) {
	*serverURL = "postgres://postgres@127.0.0.1:1/none"
	require.ErrorContains(t, run(t.Context(), io.Discard, t.TempDir()), "connection refused")
}

// TestFlags: a wrong flag is refused before the service is built. A run needs VMs with the
// fence and without.
func TestFlags(t *testing.T) {
	url, n, life := *serverURL, *objects, *ttl
	defer func() { *serverURL, *objects, *ttl = url, n, life }()
	*serverURL, *objects, *ttl = "mysql://localhost/fleet", 2, time.Second
	require.EqualError(t, checkFlags(), "-db is not a URL that begins with postgres://")
	*serverURL = ""
	require.NoError(t, checkFlags())
	*objects = 1
	require.EqualError(t, checkFlags(), "-objects 1 is below 2")
	*objects, *ttl = 2, 0
	require.EqualError(t, checkFlags(), "-ttl 0s is not above 0")
}

// lines keeps the output of a run.
type lines struct {
	mu    sync.Mutex
	out   bytes.Buffer
	ended bool
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(data)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *lines) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.ended
}

// deadOwner reports whether the page has shown a dead owner and VMs in transition before the
// run ends.
func (l *lines) deadOwner() bool {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for l.running() {
		<-time.After(interval)
		page := regexp.MustCompile(`page: (\S+)`).FindStringSubmatch(l.text())
		if page == nil {
			continue
		}
		answer, err := client.Get(page[1] + "/?format=json")
		if err != nil {
			continue
		}
		var overview inspect.Overview
		err = json.NewDecoder(answer.Body).Decode(&overview)
		_ = answer.Body.Close()
		if err != nil || len(overview.Machines) != 1 || overview.Machines[0].Transitional == 0 {
			continue
		}
		for _, owner := range overview.Owners {
			if !owner.Alive {
				return true
			}
		}
	}
	return false
}

// TestJudge checks that the verdict finds every fault.
func TestJudge(t *testing.T) {
	token, began := lifecycle.NewToken(), time.Now()
	at := func(second time.Duration) time.Time { return began.Add(second * time.Second) }
	good := func() *object {
		return &object{
			vm: "vm-1", state: "running",
			rows: []lifecycle.HistoryRow{
				{Sequence: 1, Operation: 1, Event: "create", To: "creating", Token: token, Request: "r", At: at(1)},
				{Sequence: 2, Operation: 2, Event: "again", From: "creating", To: "creating", Token: token, At: at(2)},
				{Sequence: 3, Operation: 2, Event: "done", From: "creating", To: "running", At: at(4)},
			},
			orders: []order{
				{Operation: 2, Admission: token, Replica: "b", at: at(3)},
				{Operation: 1, Admission: token, Replica: "a", at: at(5), refused: true},
			},
			requests: []request{{key: "r", event: "create", operation: 1}, {key: "never written", event: "stop", refused: at(3)}},
		}
	}
	for name, test := range map[string]struct {
		plant func(*object)
		fault string
	}{
		"nothing wrong":     {func(*object) {}, ""},
		"accepted twice":    {func(o *object) { o.rows[1].Request = "r" }, "a request was accepted twice"},
		"another state":     {func(o *object) { o.state = "stopped" }, "the record is stopped, the history ends with running"},
		"request lost":      {func(o *object) { o.rows[0].Request = "" }, "a user was answered"},
		"another operation": {func(o *object) { o.requests[0].operation = 7 }, "a user was answered"},
		"another event":     {func(o *object) { o.requests[0].event = "stop" }, "a user was answered"},
		"unknown order":     {func(o *object) { o.orders[0].Operation = 9 }, "no operation has the order"},
		"another admission": {func(o *object) { o.orders[0].Admission = lifecycle.NewToken() }, "no operation has the order"},
		"done and refused":  {func(o *object) { o.orders[0].refused = true }, "done without an order"},
		"done by nothing":   {func(o *object) { o.orders = nil }, "done without an order"},
		"done too early":    {func(o *object) { o.orders[0].at = at(5) }, "done without an order"},
		"unknown and zero":  {func(o *object) { o.orders[0] = order{Operation: 9} }, "no operation has the order"},
		"two replicas": {func(o *object) {
			o.orders = append(o.orders, order{Operation: 2, Admission: token, Replica: "c", at: at(5)})
		}, "two replicas, b and c, have ordered operation 2"},
		"written and refused":  {func(o *object) { o.requests[0].refused = at(2) }, "a user was refused"},
		"refused, then late":   {func(o *object) { o.requests[0].refused = at(0) }, ""},
		"a request of no user": {func(o *object) { o.requests = nil }, "no user was answered"},
		"failed":               {func(o *object) { o.rows[2].Event = "fail" }, "an operation has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			o, found := good(), tally{}
			test.plant(o)
			found.judge(o)
			if test.fault == "" {
				require.Equal(t, tally{executed: 1, refused: 1}, found)
				return
			}
			require.Contains(t, strings.Join(found.faults, "\n"), test.fault)
		})
	}
	late := good()
	late.orders[1].refused = false
	var found tally
	found.judge(late)
	require.Equal(t, tally{executed: 2, stale: 1}, found)
}

// TestLongHistory: the verdict reads all pages of a history.
func TestLongHistory(t *testing.T) {
	life := fsm.Must[payload](fsm.Spec[string, string]{
		Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "absent", Kind: fsm.Absent}, {Name: "running", Kind: fsm.Stable}},
		Rows: fsm.Rows(
			fsm.Move("absent", "create", "running").By("user"),
			fsm.Move("running", "resize", "running").By("user"),
			fsm.Move("running", "delete", "absent").By("user"),
		),
	})
	vms := lifecycle.Must(life, &lifecycle.MemoryStore{KeepHistory: -1}, &lifecycle.Config[string]{})
	_, err := vms.Create(t.Context(), "vm-1", "create", "user", nil, nil)
	require.NoError(t, err)
	for range lifecycle.MaxPage {
		_, err := vms.Fire(t.Context(), "vm-1", "resize", "user", nil)
		require.NoError(t, err)
	}
	w := &world{reader: reader{vms: vms}, cloud: &cloud{}, users: &users{}}
	o, err := w.object(t.Context(), "vm-1")
	require.NoError(t, err)
	require.Equal(t, 1+lifecycle.MaxPage, len(o.rows))
}

// TestShows checks that a run is not good in which what it is for has not happened.
func TestShows(t *testing.T) {
	good := func() (w *world, guarded, control *tally) {
		w = &world{users: &users{}, took: map[string][]time.Duration{}}
		w.users.replayed.Store(1)
		for _, fault := range faults {
			w.took[fault] = []time.Duration{1}
		}
		return w, &tally{refused: 1}, &tally{stale: 1}
	}
	require.Empty(t, (*world).missing(good()))
	for want, spoil := range map[string]func(w *world, guarded, control *tally){
		"late orders that the fence refuses":                         func(_ *world, guarded, _ *tally) { guarded.refused = 0 },
		"late orders that are executed without the fence":            func(_ *world, _, control *tally) { control.stale = 0 },
		"answers that repeat a lost one":                             func(w *world, _, _ *tally) { w.users.replayed.Store(0) },
		"operations of a replica that was killed by SIGKILL":         func(w *world, _, _ *tally) { delete(w.took, killed) },
		"operations of a replica that was paused by SIGSTOP":         func(w *world, _, _ *tally) { delete(w.took, paused) },
		"operations of a replica that was cut off from the database": func(w *world, _, _ *tally) { delete(w.took, cutOff) },
	} {
		t.Run(want, func(t *testing.T) {
			w, guarded, control := good()
			spoil(w, guarded, control)
			require.Equal(t, []string{"the run shows nothing about " + want}, w.missing(guarded, control))
		})
	}
}

// TestProvider: late orders are refused, except for the control.
func TestProvider(t *testing.T) {
	c := &cloud{orders: map[string][]order{}}
	routes := http.NewServeMux()
	routes.Handle("PUT /provider/{vm}", c)
	send := func(vm, body string) int {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/provider/"+vm, strings.NewReader(body)))
		return w.Code
	}
	for vm, late := range map[string]int{nameOf(0): http.StatusConflict, nameOf(1): http.StatusOK} {
		t.Run(vm, func(t *testing.T) {
			require.Equal(t, http.StatusBadRequest, send(vm, "{"))
			require.Equal(t, http.StatusOK, send(vm, `{"operation": 2}`))
			require.Equal(t, http.StatusOK, send(vm, `{"operation": 2}`), "the same operation again")
			require.Equal(t, late, send(vm, `{"operation": 1}`))
			require.True(t, c.seen(vm, 1))
			require.False(t, c.seen(vm, 2))
			require.Len(t, c.orders[vm], 3)
		})
	}
}

// TestProxy: answers are swallowed while requests arrive, and later connections are whole.
func TestProxy(t *testing.T) {
	engine, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	arrived := make(chan string, 10)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := engine.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				buffer := make([]byte, 10)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					arrived <- string(buffer[:n])
					_, _ = conn.Write(buffer[:n])
				}
			})
		}
	})
	p, err := newProxy(engine.Addr().String())
	require.NoError(t, err)
	defer func() {
		require.NoError(t, errors.Join(p.stop(), engine.Close()))
		serving.Wait()
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.listener.Addr().String())
		require.NoError(t, err)
		return conn
	}
	echo := func(conn net.Conn, text string) {
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
		require.Equal(t, text, <-arrived)
		answer := make([]byte, len(text))
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, text, string(answer))
	}
	first := dial()
	defer first.Close()
	echo(first, "one")
	p.cable.Load().delay.Store(int64(time.Millisecond))
	echo(first, "two")
	p.cable.Load().swallow.Store(true)
	_, err = io.WriteString(first, "three")
	require.NoError(t, err)
	require.Equal(t, "three", <-arrived)
	require.NoError(t, first.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = first.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the answer does not come")
	require.NoError(t, first.SetReadDeadline(time.Time{}))
	p.heal()
	_, _ = io.ReadAll(first) // until the connection has ended
	second := dial()
	defer second.Close()
	echo(second, "four")
}
