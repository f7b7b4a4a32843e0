package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestControllerAsItRuns makes random requests and sends random messages to a real
// Coordinator and to the controller of the model, and compares the records.
func TestControllerAsItRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawCall), 1, 80).Draw(rt, "script")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = callBoth(t, script) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// call is a request, or a message about an operation: the present one, or one of
// those before.
type call struct {
	What    edgecloud.Event // empty: the message
	Reports edgecloud.State
	Since   uint64
}

func drawCall(t *rapid.T) call {
	c := call{What: rapid.SampledFrom([]edgecloud.Event{
		"", "", "", "", edgecloud.Create, edgecloud.Update, edgecloud.Update, edgecloud.Delete, edgecloud.Undo, edgecloud.TimedOut,
	}).Draw(t, "what")}
	if c.What == "" {
		c.Reports = rapid.SampledFrom([]edgecloud.State{
			edgecloud.Creating, edgecloud.Updating, edgecloud.Deleting, edgecloud.Ready, edgecloud.Ready, edgecloud.NotPresent,
			edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError,
		}).Draw(t, "reports")
		c.Since = rapid.SampledFrom([]uint64{0, 0, 0, 1, 2}).Draw(t, "since")
	}
	return c
}

// callBoth returns what differs.
func callBoth(t *testing.T, script []call) string {
	ctx := t.Context()
	e := &EdgeCloud{Parts: Complete, Absent: true}
	c, _ := e.begin()
	c.Left, c.Late = 200, 200
	// The sweep does not undo failed operations: the script requests it.
	real, err := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), &edgecloud.Config{UndoAfter: -1})
	if err != nil {
		return err.Error()
	}
	for _, err := range []error{
		func() error { _, err := real.Cloudlets.StartUp(ctx, "cloudlet", 1, "v1"); return err }(),
		real.Cloudlets.Acknowledge(ctx, "cloudlet", 1), real.Cloudlets.Gathered(ctx, "cloudlet", 1),
	} {
		if err != nil {
			return err.Error()
		}
	}
	in := real.Clusters
	for i, s := range script {
		// A model that may do several things is to do this one.
		take := func(want edgecloud.Event) func(string, controller) {
			return func(label string, next controller) {
				if label == string(want) {
					c = next
				}
			}
		}
		var err error
		version := int(c.Operation) + 1
		switch s.What {
		case edgecloud.Create:
			_, err = in.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "cloudlet", Nodes: version}, nil)
			e.asks(c, take(s.What))
		case edgecloud.Update:
			_, err = in.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { s.Nodes = version; return nil }, nil)
			e.asks(c, take(s.What))
		case edgecloud.Delete:
			_, err = in.Delete(ctx, "c", nil)
			e.asks(c, take(s.What))
			e.coordinates(c, take(edgecloud.Prepared))
		case edgecloud.Undo:
			_, err = in.Undo(ctx, "c", 0, "")
			e.coordinates(c, take(s.What))
		case edgecloud.TimedOut:
			time.Sleep(edgecloud.CreateTimeout + time.Minute)
			_, err = real.Sweep(ctx)
			e.sweeps(c, take(s.What))
		default:
			op := c.Operation - min(c.Operation, s.Since)
			_, err = in.Receive(ctx, 1, edgecloud.Report{ID: "c", Operation: lifecycle.OpID(op), State: s.Reports})
			e.receives(c, info{s.Reports, uint8(op)}, take(""))
		}
		type record struct {
			State     edgecloud.State
			Operation uint64
			Version   int
		}
		models := record{edgecloud.NotPresent, c.Operation, int(c.Content)}
		runs := models
		if c.Exists {
			models.State = edgecloud.ClusterInst.StateAt(c.State)
		}
		switch rec, lookup := in.Get(ctx, "c"); {
		case lookup == nil:
			runs = record{rec.State, uint64(rec.Operation), rec.Payload.Nodes}
		case errors.Is(lookup, lifecycle.ErrNotFound):
			runs.State = edgecloud.NotPresent
		default:
			return lookup.Error()
		}
		if runs != models {
			return fmt.Sprintf("after %d of %v: %+v runs (%v), the model has %+v", i+1, script, runs, err, models)
		}
	}
	return ""
}

// TestWorkerAsItRuns gives random orders to a real ResourceManager and to the CRM
// of the model, and compares what they say and what is there.
func TestWorkerAsItRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &EdgeCloud{Parts: Complete, Absent: true}
		_, a := e.begin()
		var site site
		start := func() *edgecloud.ResourceManager {
			crm, err := edgecloud.NewResourceManager(&site, site.hear)
			if err != nil {
				t.Fatal(err)
			}
			return crm
		}
		real := start()
		orders := rapid.SliceOfN(rapid.Uint8Range(0, 6), 1, 30).Draw(t, "orders, 0 for a crash")
		for _, op := range orders {
			site.sent = nil
			var sent []info
			if op == 0 {
				real = start()
				a = agent{There: a.There}
				continue
			}
			// What an operation asks for does not change.
			o := order{[]edgecloud.Event{edgecloud.Create, edgecloud.Update, edgecloud.Delete}[op%3], op}
			err := real.Handle(context.Background(), edgecloud.Order{
				Key: site.key(), In: "c", Operation: lifecycle.OpID(op), Verb: o.Verb, Cluster: edgecloud.ClusterSpec{Nodes: int(op)},
			})
			if err != nil && !errors.Is(err, lifecycle.ErrStale) {
				t.Fatal(err)
			}
			e.takes(a, o, func(_ string, next agent) { a = next })
			for {
				var moves []func()
				e.answers(a, func(_ string, i info, next agent) {
					moves = append(moves, func() { sent, a = append(sent, i), next })
				})
				if len(moves) == 0 {
					break
				}
				moves[len(moves)-1]() // that it works comes before how it ended
			}
			if !slices.Equal(sent, site.sent) || int(a.There) != site.there {
				t.Fatalf("order %v of %v: %v and version %d run (%v), the model reports %v and has version %d",
					o, orders, site.sent, site.there, err, sent, a.There)
			}
		}
	})
}

// site is a cloudlet with one ClusterInst.
type site struct {
	there int
	sent  []info
}

func (s *site) key() lifecycle.Key {
	return lifecycle.Key{Machine: edgecloud.ClusterInst.Name(), ID: "c"}
}

func (s *site) hear(_ context.Context, _ lifecycle.Key, i edgecloud.Report) error {
	s.sent = append(s.sent, info{i.State, uint8(i.Operation)})
	return nil
}

func (s *site) Do(_ context.Context, o edgecloud.Order) (json.RawMessage, error) {
	s.there = o.Cluster.Nodes
	if o.Verb == edgecloud.Delete {
		s.there = 0
	}
	return nil, nil
}

func (s *site) Present(context.Context) ([]lifecycle.Key, error) { return nil, nil }
