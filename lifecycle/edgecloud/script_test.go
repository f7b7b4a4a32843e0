package edgecloud_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestScripts runs testdata/*.script: requests and reports in, states and results out.
// All objects of a file are in one memory store. The commands:
//
//	cloudlet ID create version=V | start notify=N version=V | ack notify=N | gathered notify=N |
//	            gather-failed notify=N | disconnected notify=N | up |
//	            upgrade version=V | ack-upgrade notify=N | bringup-failed notify=N [reason=(TEXT)] |
//	            keep-old notify=N | repaired version=V reason=(TEXT)
//	cluster ID create on=CLOUDLET nodes=N | app ID create in=CLUSTER replicas=N
//	cluster|app ID update n=N | delete | undo [op=N] | get | history |
//	            report STATE [op=N] [notify=N] [errors=(TEXT, ...)] | wait [patience=DURATION] | verdicts
//	            requests with [force] [keep-error] [reason=(TEXT)]
//	reconnect CLOUDLET notify=N        with lines: cluster|app ID STATE [OPERATION]
//	sweep
//	restart                            another coordinator on the same store
//
// The files together take every row of the tables, except those that the test names.
func TestScripts(t *testing.T) {
	covered := covers(t)
	scripttest.Run(t, "testdata/*.script", func(t *testing.T) scripttest.Harness {
		store := &lifecycle.MemoryStore{KeepHistory: -1}
		s := &script{begun: map[string]any{}}
		restart := func() {
			var err error
			s.c, err = edgecloud.NewCoordinator(store, &edgecloud.Config{Observer: covered})
			require.NoError(t, err)
		}
		restart()
		return scripttest.Harness{Commands: map[string]scripttest.Command{
			"cloudlet": s.cloudlet,
			"cluster": func(t *testing.T, a *scripttest.Args) string {
				n := a.Number("n")
				return instance(t, s, a, s.c.Clusters, edgecloud.ClusterSpec{Cloudlet: a.Value("on"), Nodes: a.Number("nodes")},
					func(c *edgecloud.ClusterSpec) { c.Nodes = n })
			},
			"app": func(t *testing.T, a *scripttest.Args) string {
				n := a.Number("n")
				return instance(t, s, a, s.c.Apps, edgecloud.AppSpec{ClusterInst: a.Value("in"), Replicas: a.Number("replicas")},
					func(spec *edgecloud.AppSpec) { spec.Replicas = n })
			},
			"reconnect": s.reconnect,
			"sweep": func(t *testing.T, _ *scripttest.Args) string {
				results, err := s.c.Sweep(t.Context())
				require.NoError(t, err)
				return lines(results)
			},
			"restart": func(*testing.T, *scripttest.Args) string { restart(); return "" },
		}}
	})
}

// covers returns an observer that counts the rows that objects take. When the test
// ends, it demands all of them but the exceptions.
func covers(t *testing.T) lifecycle.Observer {
	// AppInst has the same rows and the same code.
	_, insts := fsmtest.Watch(edgecloud.ClusterInst, &fsmtest.CoverConfig{Except: map[string]string{
		"DeletePrepare -TimedOut-> Ready": "a controller dies in DeletePrepare: see the crash tests",
	}})
	_, created := fsmtest.Watch(edgecloud.CloudletCreate, nil)
	_, upgraded := fsmtest.Watch(edgecloud.CloudletUpgrade, &fsmtest.CoverConfig{Except: map[string]string{
		"Updating -Gathered-> Ready": "Cloudlets sends the missed acknowledgement first",
	}})
	all := map[string]*fsmtest.Coverage{
		edgecloud.ClusterInst.Name(): insts, edgecloud.AppInst.Name(): insts,
		edgecloud.CloudletCreate.Name(): created, edgecloud.CloudletUpgrade.Name(): upgraded,
	}
	t.Cleanup(func() {
		for _, c := range []*fsmtest.Coverage{insts, created, upgraded} {
			c.Judge(t)
		}
	})
	return lifecycle.Observer{Changed: func(_ context.Context, h lifecycle.CommittedChange) {
		all[h.Machine].Saw(fsm.Moved{From: h.From, Origin: h.FromOrigin, To: h.To, Event: h.Event, Actor: h.Actor, Row: -1})
	}}
}

// script is the world of one file.
type script struct {
	c     *edgecloud.Coordinator
	begun map[string]any // the records that requests have returned, for wait
}

func (s *script) cloudlet(t *testing.T, a *scripttest.Args) string {
	ctx, c := t.Context(), s.c.Cloudlets
	id, verb := a.Word(), a.Word()
	n, version, reason := int64(a.Number("notify")), a.Value("version"), a.Value("reason")
	var err error
	result := ""
	switch verb {
	case "up":
		up(t, s.c, id)
	case "create":
		_, err = c.Create(ctx, id, version, nil)
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
		result = fmt.Sprintf("moved: %v; ", moved)
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
		a.Fatalf("unknown verb %q", verb)
	}
	start, gone := c.Creation(ctx, id)
	up, _ := c.Upgrading(ctx, id)
	if gone != nil {
		return scripttest.Error(errors.Join(err, gone))
	}
	result += fmt.Sprintf("creation %s, CRM %s notify %d; upgrade %s to %s",
		start.State, cmp.Or(start.Payload.Version, "none"), start.Payload.NotifyID, up.State, up.Payload.Version)
	if up.Reason != "" {
		result += " (" + up.Reason + ")"
	}
	if err != nil {
		return scripttest.Error(err) + "\n" + result
	}
	return result
}

func instance[T any](t *testing.T, s *script, a *scripttest.Args, in *edgecloud.Instances[T], spec T, edit func(*T)) string {
	ctx := t.Context()
	call := &edgecloud.Call{
		Force: a.Flag("force"), KeepError: a.Flag("keep-error"), Reason: a.Value("reason"),
	}
	id, verb := a.Word(), a.Word()
	key := a.Command() + id
	result := func(rec edgecloud.Record[T], err error) string {
		if err != nil {
			return scripttest.Error(err)
		}
		return text(rec)
	}
	request := func(rec edgecloud.Record[T], err error) string {
		if err == nil {
			s.begun[key] = rec
		}
		return result(rec, err)
	}
	op := lifecycle.OpID(a.Number("op"))
	switch verb {
	case "create":
		return request(in.Create(ctx, id, spec, call))
	case "update":
		return request(in.Update(ctx, id, func(t *T) error { edit(t); return nil }, call))
	case "delete":
		return request(in.Delete(ctx, id, call))
	case "undo":
		return result(in.Undo(ctx, id, op, call.Reason))
	case "get":
		return result(in.Get(ctx, id))
	case "wait":
		start := time.Now()
		rec, err := in.Wait(ctx, s.begun[key].(edgecloud.Record[T]), a.Duration("patience"))
		out := fmt.Sprintf("after %v: %s", time.Since(start), text(rec))
		if err != nil {
			return scripttest.Error(err) + "\n" + out
		}
		return out
	case "report":
		v, err := in.Receive(ctx, s.sender(t, a, key), edgecloud.Report{ID: id, Operation: op, State: edgecloud.State(a.Word()), Errors: a.Values("errors")})
		if err != nil {
			return scripttest.Error(err)
		}
		now, _ := in.Get(ctx, id)
		return fmt.Sprintf("%v: %s", v, text(now))
	case "verdicts":
		return fmt.Sprint(in.Verdicts())
	case "history":
		rows, err := in.Manager().History(ctx, id, 0, 0)
		require.NoError(t, err)
		return lines(rows)
	}
	a.Fatalf("unknown verb %q", verb)
	return ""
}

// sender returns the notify id that a report names; without one, that of the present CRM.
func (s *script) sender(t *testing.T, a *scripttest.Args, key string) int64 {
	if n := a.Number("notify"); n != 0 {
		return int64(n)
	}
	cluster := strings.TrimPrefix(key, "cluster")
	if app, err := s.c.Apps.Get(t.Context(), strings.TrimPrefix(key, "app")); err == nil && a.Command() == "app" {
		cluster = app.Payload.ClusterInst
	}
	rec, _ := s.c.Clusters.Get(t.Context(), cluster)
	return notifyID(t.Context(), s.c, rec.Payload.Cloudlet)
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

func (s *script) reconnect(t *testing.T, a *scripttest.Args) string {
	var all edgecloud.Account
	for _, f := range a.Lines() {
		report := edgecloud.Report{ID: f[1], State: edgecloud.State(f[2])}
		if len(f) > 3 {
			n, err := strconv.Atoi(f[3])
			require.NoError(t, err)
			report.Operation = lifecycle.OpID(n)
		}
		if f[0] == "cluster" {
			all.Clusters = append(all.Clusters, report)
		} else {
			all.Apps = append(all.Apps, report)
		}
	}
	r, err := s.c.Reconnect(t.Context(), a.Word(), int64(a.Number("notify")), all)
	out := reconciled("cluster", r.Clusters) + reconciled("app", r.Apps)
	if err != nil {
		out += scripttest.Error(err)
	}
	return out
}

func reconciled[T any](kind string, r lifecycle.ReconcileResult[edgecloud.State, T]) string {
	var out strings.Builder
	for _, x := range r.Outcomes {
		fmt.Fprintf(&out, "%s %s: operation %d %v\n", kind, x.ID, x.Operation, x.Verdict)
	}
	for _, rec := range r.Resend {
		fmt.Fprintf(&out, "%s %s: send again: %s\n", kind, rec.ID, text(rec))
	}
	for _, rec := range r.Missing {
		fmt.Fprintf(&out, "%s %s: missing: %s\n", kind, rec.ID, text(rec))
	}
	for _, id := range r.Extra {
		fmt.Fprintf(&out, "%s %s: no record\n", kind, id)
	}
	return out.String()
}

func lines[T fmt.Stringer](list []T) string {
	var out strings.Builder
	for _, x := range list {
		fmt.Fprintln(&out, x)
	}
	return out.String()
}
