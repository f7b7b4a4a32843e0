package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestProtocolReplay plays the counterexamples that internal/models found to a
// real manager and a real CRM. Without the part of the protocol that the model
// left out, the record contradicts the cluster, or stays in transition. With that part,
// the same messages in the same order do no harm.
func TestProtocolReplay(t *testing.T) {
	for _, c := range []struct {
		fixture string
		without protocolPart
		stuck   bool // without the part the object hangs; else the object differs from its record
	}{
		{"document-disconnect", comparing, false},
		{"document-crash", comparing, false},
		{"document-duplicate", comparing, false},
		{"without-fence", comparing, false},
		{"without-outcomes", naming, false},
		{"without-memory", remembering, false},
		{"limit-forgets", remembering, false}, // what is gone: a CRM remembers that too
		{"without-resend", resending, true},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			trace := fixtureOf(t, c.fixture)
			synctest.Test(t, func(t *testing.T) {
				without := replayed(t, trace, c.without)
				require.Equal(t, c.stuck, without.hangs(t))
				require.Equal(t, !c.stuck, without.lies(t) != "", "the record is right")
			})
			synctest.Test(t, func(t *testing.T) {
				with := replayed(t, trace, "")
				require.False(t, with.hangs(t))
				require.Empty(t, with.lies(t))
			})
		})
	}
}

// TestLateReport plays a trace in which a report of an earlier operation arrives in the
// next one, with its operation id. The protocol is complete: only the manager's comparison
// of operation ids protects the object.
func TestLateReport(t *testing.T) {
	trace := fixtureOf(t, "late-report")
	synctest.Test(t, func(t *testing.T) {
		without := replayed(t, trace, comparing)
		require.Equal(t, "version 3, and version 2 is there", without.lies(t))
		require.NotContains(t, without.verdicts, lifecycle.Stale)
	})
	synctest.Test(t, func(t *testing.T) {
		with := replayed(t, trace, "")
		require.Empty(t, with.lies(t))
		require.Equal(t, []lifecycle.Verdict{lifecycle.Applied, lifecycle.Stale, lifecycle.Applied}, with.verdicts)
	})
}

// TestProtocolLimits: what no package promises. The sweeper gives an operation up
// and it is undone, and the CRM does it all the same. A CRM that has crashed, and
// with it forgotten what it knew, gets an order from before.
func TestProtocolLimits(t *testing.T) {
	for fixture, want := range map[string]string{
		"limit-deadline": "version 1, and version 2 is there",
		"limit-durable":  "version 3, and version 2 is there",
	} {
		trace := fixtureOf(t, fixture)
		synctest.Test(t, func(t *testing.T) { require.Equal(t, want, replayed(t, trace, "").lies(t)) })
	}
}

func fixtureOf(t *testing.T, name string) *explore.Trace {
	t.Helper()
	text, err := os.ReadFile("../internal/models/testdata/" + name + ".json")
	require.NoError(t, err)
	trace, err := explore.ParseTrace(text)
	require.NoError(t, err)
	return trace
}

// protocolPart is what can be taken out.
type protocolPart string

const (
	comparing   protocolPart = "comparing"   // the manager compares the operation of a report
	naming      protocolPart = "naming"      // an answer is one that names an operation
	remembering protocolPart = "remembering" // the CRM remembers its requests
	resending   protocolPart = "resending"   // requests without an answer are sent again
)

// world is both sides of the protocol: one object, and a CRM with one version of
// it on its cloudlet.
type world struct {
	m       *lifecycle.Manager[edgecloud.State, edgecloud.Event, edgecloud.ClusterSpec]
	crm     *edgecloud.ResourceManager
	there   int
	without protocolPart

	verdicts []lifecycle.Verdict // on the messages of the CRM
}

// Do is the platform of the CRM. The version is in the number of nodes.
func (w *world) Do(_ context.Context, o edgecloud.Order) (json.RawMessage, error) {
	w.there = o.Cluster.Nodes
	if o.Verb == edgecloud.Delete {
		w.there = 0
	}
	return nil, nil
}

func (w *world) Present(context.Context) ([]lifecycle.Key, error) { return nil, nil }

// start starts the CRM. Its reports are lost: the trace has those that arrive.
func (w *world) start() {
	send := func(context.Context, lifecycle.Key, edgecloud.Report) error { return nil }
	crm, err := edgecloud.NewResourceManager(w, send)
	if err != nil {
		panic(err)
	}
	w.crm = crm
}

const replayedID = "c1"

// replayed plays a trace to a manager whose object is Ready in version 1.
func replayed(t *testing.T, trace *explore.Trace, without protocolPart) *world {
	w := &world{
		m: lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
			Undo: []edgecloud.Event{edgecloud.Undo},
		}),
		there: 1, without: without,
	}
	w.start()
	rec := create(t, w.m, replayedID, edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 1})
	report(t, w.m, replayedID, rec.Operation, edgecloud.Done, edgecloud.CRM, "")
	require.Equal(t, "Ready, version 1", trace.Actors[0].Start)
	for _, s := range trace.Steps {
		switch {
		case s.Kind == explore.StepFault && s.Label == "crash":
			w.start()
		case s.Actor == "controller" && s.Kind == explore.StepAct:
			w.act(t, edgecloud.Event(s.Label))
		case s.Actor == "controller" && s.Kind == explore.StepDeliver:
			w.hear(t, s.Message)
		case s.Actor == "crm" && s.Kind == explore.StepDeliver:
			w.ask(t, s.Message)
		}
	}
	if without != resending {
		w.resend(t)
	}
	return w
}

// act is a move of a user, of the controller or of the sweeper. One that the table
// refuses, because something before it was refused, is refused in good order.
func (w *world) act(t *testing.T, e edgecloud.Event) {
	actor, change := edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{}
	switch e {
	case edgecloud.TimedOut:
		time.Sleep(edgecloud.UpdateTimeout + time.Second)
		sweep(t, w.m)
		return
	case edgecloud.Prepared, edgecloud.Undo:
		actor = edgecloud.Controller
	case edgecloud.Update:
		rec := get(t, w.m, replayedID)
		change.Edit = func(c *edgecloud.ClusterSpec) error { c.Nodes = int(rec.Operation) + 1; return nil }
	}
	if _, err := w.m.Fire(t.Context(), replayedID, e, actor, change); err != nil {
		require.ErrorIs(t, err, fsm.ErrNotAllowed)
	}
}

// hear is a message of the CRM that arrives, such as "Ready in operation 2".
func (w *world) hear(t *testing.T, message string) {
	verb, number, _ := strings.Cut(message, " in operation ")
	op, _ := strconv.Atoi(number)
	e := map[string]edgecloud.Event{
		"Updating": edgecloud.Working, "Ready": edgecloud.Done, "NotPresent": edgecloud.Done,
	}[verb]
	require.NotEmpty(t, e, message)
	report := w.m.Report
	if w.without == comparing || w.without == naming && op == 0 {
		report = w.m.ReportUnfenced
	}
	verdict, err := report(t.Context(), replayedID, lifecycle.OpID(op), e, edgecloud.CRM, nil)
	require.NoError(t, err)
	w.verdicts = append(w.verdicts, verdict)
}

// ask is an order that arrives, such as "Update 2". Its version is its number.
func (w *world) ask(t *testing.T, message string) {
	var verb string
	var op int
	_, err := fmt.Sscan(message, &verb, &op)
	require.NoError(t, err)
	if w.without == remembering {
		w.start()
	}
	err = w.crm.Handle(t.Context(), edgecloud.Order{
		Key: lifecycle.Key{Machine: edgecloud.ClusterInst.Name(), ID: replayedID}, In: replayedID,
		Operation: lifecycle.OpID(op), Verb: edgecloud.Event(verb), Cluster: edgecloud.ClusterSpec{Nodes: op},
	})
	if !errors.Is(err, lifecycle.ErrStale) {
		require.NoError(t, err)
	}
}

// resend repeats the requests that have no answer.
func (w *world) resend(t *testing.T) {
	all, err := lifecycle.Reconcile(t.Context(), w.m, edgecloud.CRM, nil, nil)
	require.NoError(t, err)
	for _, rec := range all.Resend {
		w.ask(t, fmt.Sprintf("%s %d", edgecloud.Update, rec.Operation))
		w.hear(t, fmt.Sprintf("Ready in operation %d", rec.Operation))
	}
}

// hangs reports whether the object is in transition and no message can move it.
func (w *world) hangs(t *testing.T) bool {
	state, _ := w.record(t)
	return !edgecloud.ClusterInst.Kind(state).Resting()
}

// lies returns the record and the cluster, if the object is at rest and they differ.
func (w *world) lies(t *testing.T) string {
	state, version := w.record(t)
	if state != edgecloud.Ready && state != edgecloud.NotPresent || version == w.there {
		return ""
	}
	return fmt.Sprintf("version %d, and version %d is there", version, w.there)
}

func (w *world) record(t *testing.T) (state edgecloud.State, version int) {
	rec, err := w.m.Get(t.Context(), replayedID)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return edgecloud.NotPresent, 0
	}
	require.NoError(t, err)
	return rec.State, rec.Payload.Nodes
}
