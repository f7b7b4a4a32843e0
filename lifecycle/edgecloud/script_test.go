package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestScripts runs the stories of testdata/story-*.txt: requests and messages in,
// states and answers out. All objects of a file live in one memory store, and time
// is that of a bubble. The commands:
//
//	cloudlet ID create version=V | start notify=N version=V | ack notify=N | gathered notify=N |
//	            gather-failed notify=N | disconnected notify=N |
//	            upgrade version=V | ack-upgrade notify=N | bringup-failed notify=N [reason=(TEXT)] |
//	            keep-old notify=N | repaired version=V reason=(TEXT)
//	cluster ID create on=CLOUDLET nodes=N | app ID create in=CLUSTER replicas=N
//	cluster|app ID update n=N | delete | undo [op=N] | get | history |
//	            says STATE [op=N] [errors=(TEXT, ...)] | wait | verdicts
//	            each with [force] [override=NAME] [reason=(TEXT)] [patience=DURATION] [keep-error]
//	reconnect CLOUDLET notify=N        with lines: cluster|app ID STATE [OPERATION]
//	sweep
//	advance DURATION
//	restart                            another coordinator on the same store
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/story-*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	seen := covers(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{store: &lifecycle.MemoryStore{KeepHistory: -1}, begun: map[string]any{}, seen: seen}
				s.start()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					s.t, s.d, s.out = t, d, &strings.Builder{}
					s.run(t.Context())
					return s.out.String()
				})
			})
		})
	}
}

type script struct {
	t     *testing.T
	d     *datadriven.TestData
	out   *strings.Builder
	store lifecycle.Store
	c     *edgecloud.Coordinator
	seen  lifecycle.Observer
	begun map[string]any // what a request has returned last, for wait
}

func (s *script) start() {
	s.c = edgecloud.NewCoordinator(s.store, &edgecloud.Config{Observer: s.seen})
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *script) run(ctx context.Context) {
	switch s.d.Cmd {
	case "cloudlet":
		s.cloudlet(ctx, s.word(0), s.word(1))
	case "cluster":
		instance(s, ctx, s.c.Clusters, edgecloud.ClusterSpec{Cloudlet: s.value("on"), Nodes: s.number("nodes")},
			func(c *edgecloud.ClusterSpec) { c.Nodes = s.number("n") })
	case "app":
		instance(s, ctx, s.c.Apps, edgecloud.AppSpec{ClusterInst: s.value("in"), Replicas: s.number("replicas")},
			func(a *edgecloud.AppSpec) { a.Replicas = s.number("n") })
	case "reconnect":
		s.reconnect(ctx, s.word(0))
	case "sweep":
		cases, err := s.c.Sweep(ctx)
		for _, c := range cases {
			s.say("%v", c)
		}
		s.answer("", err)
	case "advance":
		d, err := time.ParseDuration(s.word(0))
		require.NoError(s.t, err)
		time.Sleep(d) // of the bubble
		s.say("later")
	case "restart":
		s.start()
		s.say("restarted")
	default:
		s.t.Fatalf("no command %q", s.d.Cmd)
	}
}

func (s *script) cloudlet(ctx context.Context, id, verb string) {
	c, n, version, reason := s.c.Cloudlets, int64(s.number("notify")), s.value("version"), s.value("reason")
	var err error
	extra := ""
	switch verb {
	case "create":
		_, err = c.Create(ctx, id, version)
	case "start":
		_, err = c.StartUp(ctx, id, n, version)
	case "ack":
		err = c.Acknowledge(ctx, id, n)
	case "gathered":
		err = c.Gathered(ctx, id, n)
	case "gather-failed":
		err = c.GatherFailed(ctx, id, n, reason)
	case "disconnected":
		var moved bool
		moved, err = c.Disconnected(ctx, id, n)
		extra = fmt.Sprintf("moved: %v; ", moved)
	case "upgrade":
		_, err = c.Upgrade(ctx, id, version, reason)
	case "ack-upgrade":
		err = c.AckUpgrade(ctx, id, n)
	case "bringup-failed":
		err = c.BringUpFailed(ctx, id, n, reason)
	case "keep-old":
		err = c.KeepOld(ctx, id, n)
	case "repaired":
		err = c.Repaired(ctx, id, version, reason)
	case "get":
	default:
		s.t.Fatalf("no verb %q", verb)
	}
	at, gone := c.Creation(ctx, id)
	up, _ := c.Upgrading(ctx, id)
	if gone != nil {
		s.answer("", errors.Join(err, gone))
		return
	}
	why := ""
	if up.Reason != "" {
		why = fmt.Sprintf(" (%s)", up.Reason)
	}
	s.answer(fmt.Sprintf("%screation %s, CRM %s notify %d; upgrade %s to %s%s", extra,
		at.State, orNone(at.Payload.Version), at.Payload.NotifyID, up.State, up.Payload.Version, why), err)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func instance[T any](s *script, ctx context.Context, in *edgecloud.Instances[T], spec T, edit func(*T)) {
	id, verb := s.word(0), s.word(1)
	key := s.d.Cmd + id
	request := func(rec edgecloud.Record[T], err error) {
		if err == nil {
			s.begun[key] = rec
		}
		s.answer(text(rec), err)
	}
	switch verb {
	case "create":
		request(in.Create(ctx, id, spec, s.call()))
	case "update":
		request(in.Update(ctx, id, func(t *T) error { edit(t); return nil }, s.call()))
	case "delete":
		request(in.Delete(ctx, id, s.call()))
	case "undo":
		rec, err := in.Undo(ctx, id, lifecycle.OpID(s.number("op")), s.value("reason"))
		s.answer(text(rec), err)
	case "get":
		rec, err := in.Get(ctx, id)
		s.answer(text(rec), err)
	case "wait":
		start := time.Now()
		rec, err := in.Wait(ctx, s.begun[key].(edgecloud.Record[T]), s.call())
		s.answer(fmt.Sprintf("after %v: %s", time.Since(start), text(rec)), err)
	case "says":
		op := lifecycle.OpID(s.number("op"))
		v, err := in.Receive(ctx, edgecloud.Info{ID: id, Operation: op, State: edgecloud.State(s.word(2)), Errors: s.values("errors")})
		now, _ := in.Get(ctx, id)
		s.answer(fmt.Sprintf("%v: %s", v, text(now)), err)
	case "verdicts":
		s.say("%+v", in.Verdicts())
	case "history":
		rows, err := in.Manager().History(ctx, id, 0, 0)
		for _, row := range rows {
			s.say("%v", row)
		}
		s.answer("", err)
	default:
		s.t.Fatalf("no verb %q", verb)
	}
}

func text[T any](rec edgecloud.Record[T]) string {
	if rec.Revision == "" || rec.State == edgecloud.NotPresent {
		return "NotPresent"
	}
	out := fmt.Sprintf("%s, operation %d", rec.State, rec.Operation)
	switch p := any(rec.Payload).(type) {
	case edgecloud.ClusterSpec:
		out += fmt.Sprintf(", %d nodes on %s", p.Nodes, p.Cloudlet)
	case edgecloud.AppSpec:
		out += fmt.Sprintf(", %d replicas in %s", p.Replicas, p.ClusterInst)
	}
	if errs := edgecloud.Errors(rec); len(errs) > 0 {
		out += fmt.Sprintf(", errors %q", errs)
	} else if rec.Reason != "" {
		out += fmt.Sprintf(", reason %q", rec.Reason)
	}
	return out
}

func (s *script) reconnect(ctx context.Context, cloudlet string) {
	var all edgecloud.Account
	for line := range strings.Lines(s.d.Input) {
		f := strings.Fields(line)
		info := edgecloud.Info{ID: f[1], State: edgecloud.State(f[2])}
		if len(f) > 3 {
			n, err := strconv.Atoi(f[3])
			require.NoError(s.t, err)
			info.Operation = lifecycle.OpID(n)
		}
		if f[0] == "cluster" {
			all.Clusters = append(all.Clusters, info)
		} else {
			all.Apps = append(all.Apps, info)
		}
	}
	r, err := s.c.Reconnect(ctx, cloudlet, int64(s.number("notify")), all)
	reconciled(s, "cluster", r.Clusters)
	reconciled(s, "app", r.Apps)
	s.answer("", err)
}

func reconciled[T any](s *script, kind string, r lifecycle.ReconcileResult[edgecloud.State, T]) {
	for _, x := range r.Outcomes {
		s.say("%s %s: operation %d %v", kind, x.ID, x.Operation, x.Verdict)
	}
	for _, rec := range r.Resend {
		s.say("%s %s: to be sent again: %s", kind, rec.ID, text(rec))
	}
	for _, rec := range r.Missing {
		s.say("%s %s: missing: %s", kind, rec.ID, text(rec))
	}
	for _, id := range r.Extra {
		s.say("%s %s: nobody has asked for it", kind, id)
	}
}

// answer prints an answer, or the error with its status code.
func (s *script) answer(what string, err error) {
	if err != nil {
		s.say("%d: %s", lifecycle.HTTPStatus(err), strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if err == nil && what == "" && s.out.Len() == 0 {
		s.say("nothing")
	}
	if what != "" && (err == nil || s.d.Cmd == "cloudlet" || s.word(1) == "wait") {
		s.say("%s", what)
	}
}

func (s *script) call() *edgecloud.Call {
	call := &edgecloud.Call{Reason: s.value("reason"), Force: s.d.HasArg("force"), KeepError: s.d.HasArg("keep-error")}
	if p := s.value("patience"); p != "" {
		d, err := time.ParseDuration(p)
		require.NoError(s.t, err)
		call.Patience = d
	}
	if name := s.value("override"); name != "" {
		for o := range edgecloud.Override(8) {
			if o.String() == name {
				call.Override = o
			}
		}
		require.NotZero(s.t, call.Override, name)
	}
	return call
}

func (s *script) word(i int) string {
	for _, arg := range s.d.CmdArgs {
		if len(arg.Vals) == 0 {
			if i == 0 {
				return arg.Key
			}
			i--
		}
	}
	return ""
}

func (s *script) values(key string) []string {
	for _, arg := range s.d.CmdArgs {
		if arg.Key == key {
			return arg.Vals
		}
	}
	return nil
}

func (s *script) value(key string) string { return strings.Join(s.values(key), ", ") }

func (s *script) number(key string) int {
	v := s.value(key)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	require.NoError(s.t, err)
	return n
}
