package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A cluster is created; its manager's peer reports that it is there, twice.
func Example() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)

	c, err := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)
	fmt.Println(c.State, err)

	v, err := clusters.Report(ctx, "c1", c.Operation, edgecloud.Done, edgecloud.CRM, nil)
	fmt.Println(v, err)
	v, err = clusters.Report(ctx, "c1", c.Operation, edgecloud.Done, edgecloud.CRM, nil)
	fmt.Println(v, err)

	c, err = clusters.Get(ctx, "c1")
	fmt.Println(c.State, c.Payload.Nodes, err)
	// Output:
	// CreateRequested <nil>
	// applied <nil>
	// repeated <nil>
	// Ready 3 <nil>
}

// The event Undo puts the payload back which the object had before the operation.
func ExampleNew() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		Undo: []edgecloud.Event{edgecloud.Undo},
	})
	c, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)
	_, _ = clusters.Report(ctx, "c1", c.Operation, edgecloud.Done, edgecloud.CRM, nil)

	c, _ = clusters.Fire(ctx, "c1", edgecloud.Update, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{
		Edit: func(spec *edgecloud.ClusterSpec) error {
			spec.Nodes = 500
			return nil
		},
	})
	_, _ = clusters.Report(ctx, "c1", c.Operation, edgecloud.Fail, edgecloud.CRM, &lifecycle.Change[edgecloud.ClusterSpec]{Reason: "no hosts left"})
	c, _ = clusters.Get(ctx, "c1")
	fmt.Println(c.State, c.Payload.Nodes)
	c, _ = clusters.Fire(ctx, "c1", edgecloud.Undo, edgecloud.Controller, nil)
	fmt.Println(c.State, c.Payload.Nodes)
	// Output:
	// UpdateError 500
	// Ready 3
}

// An object is created once, until it is removed.
func ExampleManager_Create() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)

	c, err := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)
	fmt.Println(c.State, "operation", c.Operation, err)

	_, err = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 5}, nil)
	fmt.Println(errors.Is(err, lifecycle.ErrExists))

	_, err = clusters.Create(ctx, "c2", edgecloud.Create, edgecloud.CRM, edgecloud.ClusterSpec{}, nil)
	fmt.Println(err)
	// Output:
	// CreateRequested operation 1 <nil>
	// true
	// lifecycle: create clusterinst "c2": Create by crm: wrong actor
}

// A cloudlet exists before its first event: Add puts it into the first state of its
// machine.
func ExampleManager_Add() {
	ctx := context.Background()
	cloudlets := lifecycle.Must(edgecloud.CloudletCreate, lifecycle.NewMemoryStore(), nil)

	c, err := cloudlets.Add(ctx, "berlin", edgecloud.CloudletOffline, edgecloud.User, edgecloud.CloudletSpec{Version: "v1"}, nil)
	fmt.Println(c.State, c.Payload.Version, err)
	_, err = cloudlets.Add(ctx, "berlin", edgecloud.CloudletOffline, edgecloud.User, edgecloud.CloudletSpec{Version: "v2"}, nil)
	fmt.Println(errors.Is(err, lifecycle.ErrExists))
	// Output:
	// Offline v1 <nil>
	// true
}

// State and payload change in one commit, or not at all.
func ExampleManager_Fire() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	c, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)
	_, _ = clusters.Report(ctx, "c1", c.Operation, edgecloud.Done, edgecloud.CRM, nil)

	grow := &lifecycle.Change[edgecloud.ClusterSpec]{
		Edit: func(spec *edgecloud.ClusterSpec) error {
			spec.Nodes += 2
			return nil
		},
		Reason: "load",
	}
	c, err := clusters.Fire(ctx, "c1", edgecloud.Update, edgecloud.User, grow)
	fmt.Println(c.State, c.Payload.Nodes, "nodes, operation", c.Operation, err)

	_, err = clusters.Fire(ctx, "c1", edgecloud.Update, edgecloud.User, grow)
	fmt.Println(err)
	fmt.Println(errors.Is(err, lifecycle.ErrBusy))
	// Output:
	// UpdateRequested 5 nodes, operation 2 <nil>
	// lifecycle: fire clusterinst "c1": Update by user in UpdateRequested: cannot execute action at this time
	// true
}

// A report names the operation that it is about. Once another one has begun,
// what the first one still reports is stale, and changes nothing.
func ExampleManager_Report() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	creation, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)
	report := func(op lifecycle.OpID, e edgecloud.Event) {
		v, err := clusters.Report(ctx, "c1", op, e, edgecloud.CRM, nil)
		fmt.Println(op, e, v, err)
	}
	report(creation.Operation, edgecloud.Done)
	report(creation.Operation, edgecloud.Done)
	report(creation.Operation, edgecloud.Fail)

	update, _ := clusters.Fire(ctx, "c1", edgecloud.Update, edgecloud.User, nil)
	report(creation.Operation, edgecloud.Done)
	report(update.Operation, edgecloud.Done)
	// Output:
	// 1 Done applied <nil>
	// 1 Done repeated <nil>
	// 1 Fail refused <nil>
	// 1 Done stale <nil>
	// 2 Done applied <nil>
}

// A record is a copy: changing it does not change the object.
func ExampleManager_Get() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	_, _ = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)

	c, err := clusters.Get(ctx, "c1")
	fmt.Println(c.State, "on the way to", c.Target, err)
	fmt.Println(c.Event, "by", c.Actor)
	fmt.Println("time to answer:", c.Deadline.Sub(c.ChangedAt))

	_, err = clusters.Get(ctx, "c2")
	fmt.Println(errors.Is(err, lifecycle.ErrNotFound))
	// Output:
	// CreateRequested on the way to Ready <nil>
	// Create by user
	// time to answer: 30m0s
	// true
}

// The first ten clusters that are being created.
func ExampleManager_List() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	for _, id := range []string{"c3", "c1", "c2"} {
		_, _ = clusters.Create(ctx, id, edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)
	}
	_, _ = clusters.Report(ctx, "c2", 1, edgecloud.Done, edgecloud.CRM, nil)

	page, err := clusters.List(ctx, lifecycle.Select[edgecloud.State]{
		States: []edgecloud.State{edgecloud.CreateRequested, edgecloud.Creating},
		Limit:  10,
	})
	for _, c := range page {
		fmt.Println(c.ID, c.State)
	}
	fmt.Println(err)
	// Output:
	// c1 CreateRequested
	// c3 CreateRequested
	// <nil>
}

// Every cluster, in pages of a hundred; the caller sees one sequence.
func ExampleManager_All() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	for i := range 250 {
		spec := edgecloud.ClusterSpec{Nodes: i % 5}
		_, _ = clusters.Create(ctx, fmt.Sprintf("c%03d", i), edgecloud.Create, edgecloud.User, spec, nil)
	}
	nodes, last := 0, ""
	for c, err := range clusters.All(ctx, lifecycle.Select[edgecloud.State]{Limit: 100}) {
		if err != nil {
			fmt.Println(err) // and the sequence ends
			break
		}
		nodes, last = nodes+c.Payload.Nodes, c.ID
	}
	fmt.Println(nodes, "nodes up to", last)
	// Output:
	// 500 nodes up to c249
}

// A service that streams changes: it subscribes, reads the list, and then reads what has
// changed since.
func ExampleWatch() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	_, _ = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)

	changes := lifecycle.Watch(ctx, clusters)
	last := map[string]uint64{} // the sequence number that the client has, by id
	for c := range clusters.All(ctx, lifecycle.Select[edgecloud.State]{}) {
		fmt.Println("list:", c.ID, c.State)
		last[c.ID] = c.Sequence
	}
	_, _ = clusters.Report(ctx, "c1", 1, edgecloud.Done, edgecloud.CRM, nil)
	for changed, err := range changes {
		if err != nil {
			break
		}
		rows, _ := clusters.History(ctx, changed.ID, last[changed.ID], 0)
		for _, row := range rows {
			fmt.Println(row)
			last[changed.ID] = row.Sequence
		}
		break // a service continues until its client leaves
	}
	// Output:
	// list: c1 CreateRequested
	// clusterinst "c1" #2 operation 1: CreateRequested -Done-> Ready by crm
}

// The history outlives the object.
func ExampleManager_History() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	c, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)
	_, _ = clusters.Report(ctx, "c1", c.Operation, edgecloud.Fail, edgecloud.CRM, &lifecycle.Change[edgecloud.ClusterSpec]{Reason: "no hosts left"})
	_, _ = clusters.Fire(ctx, "c1", edgecloud.Undo, edgecloud.Controller, nil)

	rows, err := clusters.History(ctx, "c1", 0, 0)
	for _, row := range rows {
		fmt.Println(row)
	}
	fmt.Println(err)
	// Output:
	// clusterinst "c1" #1 operation 1: absent -Create-> CreateRequested by user
	// clusterinst "c1" #2 operation 1: CreateRequested -Fail-> CreateError by crm: no hosts left
	// clusterinst "c1" #3 operation 1: CreateError -Undo-> NotPresent by controller
	// <nil>
}

// An app may be updated while its cluster is Ready, as of the very commit.
func ExampleManager_Require() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	clusters := lifecycle.Must(edgecloud.ClusterInst, store, nil)
	apps := lifecycle.Must(edgecloud.AppInst, store, nil)
	_, _ = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)
	_, _ = apps.Create(ctx, "a1", edgecloud.Create, edgecloud.User, edgecloud.AppSpec{ClusterInst: "c1"}, nil)
	_, _ = apps.Report(ctx, "a1", 1, edgecloud.Done, edgecloud.CRM, nil)

	update := &lifecycle.Change[edgecloud.AppSpec]{
		Require: []lifecycle.Precondition{clusters.Require("c1", edgecloud.Ready)},
	}
	_, err := apps.Fire(ctx, "a1", edgecloud.Update, edgecloud.User, update)
	failed, _ := errors.AsType[*lifecycle.PreconditionError](err)
	fmt.Println(failed)

	_, _ = clusters.Report(ctx, "c1", 1, edgecloud.Done, edgecloud.CRM, nil)
	a, err := apps.Fire(ctx, "a1", edgecloud.Update, edgecloud.User, update)
	fmt.Println(a.State, err)
	// Output:
	// lifecycle: precondition failed: clusterinst "c1" is CreateRequested, not Ready
	// UpdateRequested <nil>
}

// A caller that loses the race gets the record that won.
func ExampleCurrent() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	_, _ = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3}, nil)

	_, err := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 5}, nil)
	if winner, ok := lifecycle.Current(clusters, err); ok {
		fmt.Println(winner.ID, "has", winner.Payload.Nodes, "nodes and is", winner.State)
	}
	// Output:
	// c1 has 3 nodes and is CreateRequested
}

// A handler answers with the status code of the error.
func ExampleHTTPStatus() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	answer := func(_ lifecycle.Record[edgecloud.State, edgecloud.ClusterSpec], err error) {
		code := lifecycle.HTTPStatus(err)
		fmt.Println(code, http.StatusText(code))
	}
	answer(clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil))
	answer(clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil))
	answer(clusters.Fire(ctx, "c1", edgecloud.Done, edgecloud.User, nil))
	answer(clusters.Fire(ctx, "c1", "Explode", edgecloud.User, nil))
	answer(clusters.Get(ctx, "c2"))
	answer(clusters.Get(ctx, ""))
	// Output:
	// 200 OK
	// 409 Conflict
	// 403 Forbidden
	// 400 Bad Request
	// 404 Not Found
	// 400 Bad Request
}

// A handler answers with the problem details of the error.
func ExampleProblem() {
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), nil)
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, err := clusters.Get(r.Context(), r.URL.Query().Get("id"))
		problem := lifecycle.Problem(err)
		w.Header().Set("Content-Type", lifecycle.ProblemContentType)
		w.WriteHeader(problem.Status)
		_ = json.NewEncoder(w).Encode(problem) // the client may have disconnected
	}
	answer := httptest.NewRecorder()
	handler(answer, httptest.NewRequest(http.MethodGet, "/clusters?id=c1", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	fmt.Print(answer.Body)

	down := fmt.Errorf("%w: dial tcp 10.0.0.5:5432: connection refused", lifecycle.ErrUnavailable)
	problem := lifecycle.Problem(down)
	fmt.Println(problem.Status, problem.Code, problem.Detail, "- gRPC", problem.GRPC)
	// Output:
	// 404 application/problem+json
	// {"type":"about:blank","title":"Not Found","status":404,"detail":"lifecycle: get clusterinst \"c1\": not found","code":"not-found","machine":"clusterinst","id":"c1"}
	// 503 unavailable store is unavailable - gRPC 14
}

// A service ends its work before it exits.
func ExampleDrain() {
	ctx := context.Background()
	jobs := lifecycle.Must(fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "job", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[string]{{Name: "absent", Kind: fsm.Absent}, {Name: "running", Kind: fsm.Transitional}, {Name: "done", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move("absent", "start", "running").By("user"),
			fsm.Move("running", "end", "done").By("worker"),
			fsm.Move("running", "late", "absent").After(time.Hour),
		),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[string]{WorkerActor: "worker", Done: []string{"end"}})
	work := lifecycle.Func(func(context.Context) error { return nil })
	_, _ = jobs.Do(ctx, "j1", "start", "user", work, nil)

	fmt.Println(lifecycle.Drain(ctx, jobs))
	job, _ := jobs.Get(ctx, "j1")
	_, err := jobs.Do(ctx, "j2", "start", "user", work, nil)
	fmt.Println(job.State, lifecycle.HTTPStatus(err))
	// Output:
	// <nil>
	// done 503
}

// An observer receives changes, refusals and reports.
func ExampleObserver() {
	ctx := context.Background()
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		Observer: lifecycle.Observer{
			Changed: func(_ context.Context, row lifecycle.CommittedChange) { fmt.Println("changed: ", row.ID, row.To) },
			Refused: func(_ context.Context, err error) { fmt.Println("refused: ", errors.Is(err, fsm.ErrWrongActor)) },
			Reported: func(_ context.Context, r lifecycle.Reported) {
				fmt.Println("reported:", r.ID, r.Event, r.Verdict)
			},
		},
	})
	_, _ = clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)
	_, _ = clusters.Fire(ctx, "c1", edgecloud.Done, edgecloud.User, nil)
	for range 2 {
		_, _ = clusters.Report(ctx, "c1", 1, edgecloud.Done, edgecloud.CRM, nil)
	}
	// Output:
	// changed:  c1 CreateRequested
	// refused:  true
	// changed:  c1 Ready
	// reported: c1 Done applied
	// reported: c1 Done repeated
}
