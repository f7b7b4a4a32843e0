package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"interlock": main})
}

type vm struct{ Address string }

type vmManager = lifecycle.Manager[string, string, vm]

var table = fsm.Must[vm](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "absent", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "running", Kind: fsm.Stable},
		{Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "creating").By("user"),
		fsm.Move("creating", "created", "running").By("worker"),
		fsm.Move("creating", "late", "failed").After(time.Microsecond),
		fsm.Move("running", "resize", "running").By("user").If(fsm.When("quota", func(context.Context, *vm, *vm) error { return nil })),
		fsm.Move("running", "delete", "absent").AlsoFrom("failed").By("user"),
	),
})

// hostile is an id that would control a terminal, and reverse its line.
const hostile = "\x1b[2Jvm\n\u009b31m\u202e"

// fill adds objects: one that runs, one that is stuck, one that was removed, and hostile.
func fill(t testing.TB, store lifecycle.Store) *vmManager {
	t.Helper()
	m := lifecycle.Must(table, store, &lifecycle.Config[string]{Version: "1"})
	ctx := t.Context()
	for _, id := range []string{"vm-1", "vm-gone", hostile} {
		_, err := m.Create(ctx, id, "create", "user", vm{"10.0.0.7"}, nil)
		require.NoError(t, err)
		_, err = m.Report(ctx, id, 1, "created", "worker", nil)
		require.NoError(t, err)
	}
	_, err := m.Fire(ctx, "vm-gone", "delete", "user", nil)
	require.NoError(t, err)
	_, err = m.Create(ctx, "vm-late", "create", "user", vm{}, nil)
	require.NoError(t, err)
	return m
}

// serve starts a service with the page below /inspect, and returns its URL.
func serve(t testing.TB) string {
	t.Helper()
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 2}}})
	end := make(chan struct{})
	for _, name := range []string{"copy", "check"} {
		_, err := q.Submit(t.Context(), "disk-1", &queue.Action{Name: name, Class: "aws", Run: func(context.Context) error {
			<-end
			return nil
		}})
		require.NoError(t, err)
	}
	tree := lock.Must(nil)
	held, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X}, &lock.Options{Owner: "deploy-7", Reason: "version 12"})
	require.NoError(t, err)
	store := lifecycle.NewMemoryStore()
	_, err = lifecycle.Join(t.Context(), store, "host-1", time.Hour)
	require.NoError(t, err)
	page, err := inspect.New(&inspect.Config{
		Title: "Shop", Machines: []inspect.Machine{inspect.Of(fill(t, store), func(v vm) any { return v })},
		Queues: map[string]inspect.Queue{"disks": inspect.OfQueue(q)}, Locks: map[string]lock.Locker{"deploys": tree},
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/inspect/", http.StripPrefix("/inspect", page))
	mux.HandleFunc("/broken/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", lifecycle.ProblemContentType)
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(lifecycle.Problem(fmt.Errorf("%w: \x1b", lifecycle.ErrUnavailable)))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		page.Close()
		close(end)
		require.NoError(t, q.Terminate(context.Background()))
		require.NoError(t, held.Unlock(context.Background()))
	})
	return server.URL
}

// writeTable writes the table as a file.
func writeTable(t testing.TB, dir string) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, fsm.WriteTable(&text, table.Table()))
	file := filepath.Join(dir, "vm.json")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
	return file
}

// runScripts runs the scripts of a directory.
func runScripts(t *testing.T, dir string, variables map[string]string, later func() error) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name, value := range variables {
				env.Setenv(name, value)
			}
			env.Setenv("HOSTILE", hostile)
			writeTable(t, env.WorkDir)
			return os.WriteFile(filepath.Join(env.WorkDir, "vms.db"), nil, 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exit CODE ARGUMENTS... runs the command and compares its exit code.
			"exit": func(ts *testscript.TestScript, _ bool, args []string) {
				code := "0"
				if err := ts.Exec("interlock", args[1:]...); err != nil {
					code = strings.TrimPrefix(err.Error(), "exit status ")
				}
				if code != args[0] {
					ts.Fatalf("exit code %s, want %s", code, args[0])
				}
			},
			// later makes the tables those of a later version, which this one cannot use.
			"later": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(later()) },
		},
	})
}

// TestService runs the scripts with a service.
func TestService(t *testing.T) {
	addr := serve(t)
	runScripts(t, "testdata/service", map[string]string{"ADDR": addr, "HOST": strings.TrimPrefix(addr, "http://")}, nil)
}

// full is an output that returns an error.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestFailingOutput requires the exit code of a failure for a failing output.
func TestFailingOutput(t *testing.T) {
	addr := serve(t) + "/inspect"
	for _, args := range [][]string{{"help"}, {"top", "-h"}, {"top", "-addr", addr}, {"stuck", "-addr", addr}} {
		var errs bytes.Buffer
		require.Equal(t, exitFailure, run(t.Context(), args, full{}, &errs))
		require.Equal(t, "interlock "+args[0]+": no space left\n", errs.String())
	}
}

// rounds ends a context after a number of writes.
type rounds struct {
	text []byte
	left int
	end  func()
}

func (r *rounds) Write(b []byte) (int, error) {
	if r.left--; r.left == 0 {
		r.end()
	}
	r.text = append(r.text, b...)
	return len(b), nil
}

// TestWatch: rounds are separated by a line. An error does not end them.
func TestWatch(t *testing.T) {
	addr := serve(t)
	watch := func(args ...string) (code int, out, errs string) {
		ctx, end := context.WithCancel(t.Context())
		o, e := &rounds{left: 3, end: end}, &bytes.Buffer{}
		code = run(ctx, append(args[:1:1], append([]string{"-watch", "-every=1ms"}, args[1:]...)...), o, e)
		return code, string(o.text), e.String()
	}
	code, out, errs := watch("locks", "-addr", addr+"/inspect")
	require.Equal(t, exitOK, code)
	require.Empty(t, errs)
	require.Regexp(t, `^(LOCK .*\ndeploys .*\n---\n){3}$`, out)

	code, out, errs = watch("locks", "-o=json", "-addr", addr+"/inspect")
	require.Equal(t, exitOK, code)
	require.Empty(t, errs)
	decoder, n := json.NewDecoder(strings.NewReader(out)), 0
	for ; decoder.More(); n++ {
		var doc inspect.LockPage
		require.NoError(t, decoder.Decode(&doc))
		require.Equal(t, "deploys", doc.Locks[0].Name)
	}
	require.Equal(t, 3, n)

	code, out, errs = watch("get", "-addr", addr+"/inspect", "vm", "none")
	require.Equal(t, exitNotFound, code)
	require.Equal(t, "---\n---\n---\n", out)
	require.Equal(t, 3, strings.Count(errs, "interlock get: not-found: "), errs)

	code, out, _ = watch("stuck", "-addr", addr+"/inspect")
	require.Equal(t, exitStuck, code)
	require.Equal(t, 3, strings.Count(out, "vm-late"))
}

// TestInterruptedRound: an interrupt during a round is not an error, also if a store in this
// process answers with a problem.
func TestInterruptedRound(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	c := &call{out: &out, watch: true, every: time.Hour}
	c.run = func(ctx context.Context, _ *call, _ []string) error {
		interrupt()
		return &problemError{lifecycle.Problem(ctx.Err())}
	}
	require.NoError(t, c.repeat(ctx, nil, &errs))
	require.Empty(t, out.String()+errs.String())
}

// TestListReadsAllPages lists more objects than a page has.
func TestListReadsAllPages(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(table, store, nil)
	for i := range lifecycle.MaxPage + 2 {
		_, err := m.Create(t.Context(), fmt.Sprintf("vm-%05d", i), "create", "user", vm{}, nil)
		require.NoError(t, err)
	}
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}})
	require.NoError(t, err)
	server := httptest.NewServer(page)
	defer server.Close()
	for limit, want := range map[int]int{0: lifecycle.MaxPage + 2, 1: 1, lifecycle.MaxPage + 1: lifecycle.MaxPage + 1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"list", "-limit", fmt.Sprint(limit), "-addr", server.URL, "-o", "json", "vm"}, &out, &errs)
			require.Equal(t, exitOK, code, &errs)
			var doc inspect.ObjectList
			require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
			require.Len(t, doc.Objects, want)
			require.Equal(t, want < lifecycle.MaxPage+2, doc.Next != "")
		})
	}
}

// unread is a lock tree that cannot be read.
type unread struct{ lock.Locker }

func (unread) Snapshot(context.Context) (lock.Snapshot, error) {
	return lock.Snapshot{}, lifecycle.ErrUnavailable
}

// answered serves a page, and runs a command with it.
func answered(t *testing.T, config *inspect.Config, args ...string) (code int, out, errs string) {
	t.Helper()
	page, err := inspect.New(config)
	require.NoError(t, err)
	server := httptest.NewServer(page)
	defer server.Close()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{args[0], "-addr", server.URL}, args[1:]...), &o, &e)
	return code, o.String(), e.String()
}

// TestUnreadLock: a lock tree that cannot be read is an error, not an empty list, and hides
// no other tree.
func TestUnreadLock(t *testing.T) {
	tree := lock.Must(nil)
	_, err := tree.Try(lock.MustParse("/shop"), lock.X)
	require.NoError(t, err)
	code, out, errs := answered(t, &inspect.Config{Locks: map[string]lock.Locker{"deploys": unread{tree}, "racks": tree}}, "locks")
	require.Equal(t, exitFailure, code)
	require.Regexp(t, `^LOCK .*\nracks +/shop .*\n$`, out)
	require.Contains(t, errs, "interlock locks: lock deploys: unavailable: ")
}

// TestLimitsAndTokens: a class without a limit does not look like one that lets nothing run.
// All limits are shown, and a request that waits has no token.
func TestLimitsAndTokens(t *testing.T) {
	q := queue.Must(&queue.Config[string]{Classes: map[string]queue.Limit{"aws": {Fair: true}, "gcp": {MaxRunning: 2, MaxChildren: 1}}})
	tree := lock.Must(nil)
	_, err := tree.Try(lock.MustParse("/shop"), lock.X)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _, _ = tree.Lock(ctx, lock.Request{Path: lock.MustParse("/shop"), Mode: lock.S}, nil) }()
	require.Eventually(t, func() bool { return tree.Counts().Waiting == 1 }, time.Minute, time.Millisecond)
	config := &inspect.Config{Queues: map[string]inspect.Queue{"disks": inspect.OfQueue(q)}, Locks: map[string]lock.Locker{"racks": tree}}
	_, out, _ := answered(t, config, "queues")
	require.Regexp(t, `(?m)^disks +aws +0 +- +0 +false +-$`, out)
	require.Regexp(t, `(?m)^disks +gcp +0 +2 +0 +false +1$`, out)
	_, out, _ = answered(t, config, "locks")
	require.Regexp(t, `(?m)^racks +/shop +X +- +[0-9ms]+ +false +1 +-$`, out)
	require.Regexp(t, `(?m)^racks +/shop +S +- +[0-9ms]+ +true +- +-$`, out)
}

// TestStuckWithoutOneStore: a store that does not answer hides no stuck object of another.
func TestStuckWithoutOneStore(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	config := &inspect.Config{Machines: []inspect.Machine{
		inspect.Of(lifecycle.Must(diskTable, store, nil), nil), inspect.Of(fill(t, lifecycle.NewMemoryStore()), nil),
	}}
	require.NoError(t, store.Close())
	code, out, errs := answered(t, config, "stuck")
	require.Equal(t, exitFailure, code)
	require.Regexp(t, `^MACHINE .*\nvm +vm-late .*\n$`, out)
	require.Regexp(t, `^interlock stuck: machine disk: closed: `, errs)
}

var diskTable = fsm.Must[vm](fsm.Spec[string, string]{
	Name: "disk", Initial: "present", States: []fsm.State[string]{{Name: "present", Kind: fsm.Final}},
})

// TestTopWithoutStore: the overview of a service whose store does not answer is a failure.
func TestTopWithoutStore(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := fill(t, store)
	require.NoError(t, store.Close())
	code, out, errs := answered(t, &inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}}, "top")
	require.Equal(t, exitFailure, code)
	require.Regexp(t, `(?m)^vm +- +- +- +closed$`, out)
	require.Regexp(t, `^interlock top: machine vm: closed: `, errs)
}

// TestLowerBounds: the overview shows which counts are lower bounds.
func TestLowerBounds(t *testing.T) {
	m := fill(t, lifecycle.NewMemoryStore())
	code, out, errs := answered(t, &inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}, MaxObjects: 1}, "top")
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^vm +1\+ +1 +0\+ +running 1\+$`, out)
}

// TestLineBreaks: no name adds a line to the output.
func TestLineBreaks(t *testing.T) {
	m := lifecycle.Must(table, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{Version: "1\n  forged"})
	_, err := m.Create(t.Context(), "vm-1", "create", "user", vm{}, nil)
	require.NoError(t, err)
	config := &inspect.Config{Title: "Shop\nforged", Machines: []inspect.Machine{inspect.Of(m, nil)}}
	for _, command := range []string{"top", "get vm vm-1"} {
		t.Run(command, func(t *testing.T) {
			code, out, errs := answered(t, config, strings.Fields(command)...)
			require.Equal(t, exitOK, code, errs)
			require.NotRegexp(t, `(?m)^ *forged`, out)
			require.Contains(t, out, `\u000a`)
		})
	}
}

// TestLongHistory: the table does not hide that there are more rows than it has.
func TestLongHistory(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	store.KeepHistory = -1
	m := fill(t, store)
	for range 50 {
		_, err := m.Fire(t.Context(), "vm-1", "resize", "user", nil)
		require.NoError(t, err)
	}
	code, out, errs := answered(t, &inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}}, "history", "vm", "vm-1")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, 1+50+1, strings.Count(out, "\n"))
	require.True(t, strings.HasSuffix(out, "\nthere are more\n"), out)
}

// forgetful is a store whose history cannot be read.
type forgetful struct{ *lifecycle.MemoryStore }

func (forgetful) History(context.Context, lifecycle.Key, uint64, int) ([]lifecycle.HistoryRow, error) {
	return nil, lifecycle.ErrUnavailable
}

// TestUnreadHistory: a history that cannot be read is an error, not an empty one.
func TestUnreadHistory(t *testing.T) {
	m := fill(t, forgetful{lifecycle.NewMemoryStore()})
	config := &inspect.Config{Machines: []inspect.Machine{inspect.Of(m, nil)}}
	code, out, errs := answered(t, config, "history", "vm", "vm-1")
	require.Equal(t, exitFailure, code)
	require.Empty(t, out)
	require.Regexp(t, `^interlock history: unavailable: `, errs)
	code, _, errs = answered(t, config, "get", "vm", "vm-1")
	require.Equal(t, exitOK, code, errs)
}

// TestManyKeysAndHolders: the tables do not hide that there are more rows than they have.
func TestManyKeysAndHolders(t *testing.T) {
	q, tree, end := queue.Must[string](nil), lock.Must(nil), make(chan struct{})
	for i := range inspect.ShownLanes + 1 {
		_, err := q.Submit(t.Context(), fmt.Sprint(i), &queue.Action{Run: func(context.Context) error {
			<-end
			return nil
		}})
		require.NoError(t, err)
		_, err = tree.Try(lock.MustParse(fmt.Sprint("/", i)), lock.X)
		require.NoError(t, err)
	}
	config := &inspect.Config{
		Machines: []inspect.Machine{inspect.Of(fill(t, lifecycle.NewMemoryStore()), nil)},
		Queues:   map[string]inspect.Queue{"disks": inspect.OfQueue(q)}, Locks: map[string]lock.Locker{"deploys": tree},
	}
	for command, last := range map[string]string{"queues": "disks +there are more", "locks": "deploys +there may be more"} {
		t.Run(command, func(t *testing.T) {
			code, out, errs := answered(t, config, command)
			require.Equal(t, exitOK, code, errs)
			require.Regexp(t, `(?m)^`+last+`$`, out)
		})
	}
	close(end)
	require.NoError(t, q.Terminate(t.Context()))
}

func TestSpan(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1s", -time.Minute: "-1m0s", 23*time.Hour + time.Second: "23h0m1s",
		49*time.Hour + time.Minute: "2d1h", -25 * time.Hour: "-1d1h",
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, span(now, now.Add(d))) })
	}
	require.Empty(t, span(time.Time{}, now))
}

// TestHelpIsTheDocumentation compares the package documentation with the help.
// UPDATE_DOCS=1 writes it anew.
func TestHelpIsTheDocumentation(t *testing.T) {
	var help bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"help"}, &help, nil))
	var lines []string
	for line := range strings.Lines(help.String()) {
		lines = append(lines, strings.TrimRight("//\t"+line, "\t\n"))
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	begin, rest, ok := strings.Cut(string(doc), "prints:\n//\n")
	require.True(t, ok)
	_, end, ok := strings.Cut(rest, "\n//\n// # Sources")
	require.True(t, ok)
	want := begin + "prints:\n//\n" + strings.Join(lines, "\n") + "\n//\n// # Sources" + end
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile("doc.go", []byte(want), 0o600))
	}
	require.Equal(t, want, string(doc))
}
