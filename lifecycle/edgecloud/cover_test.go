package edgecloud_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// covers is an observer that counts what the objects of the tables do. When the
// test ends, it prints what was covered and demands everything but what is excepted
// here.
func covers(t *testing.T) lifecycle.Observer {
	const again, dies = "as from UpdateError", "a controller dies while it looks: see the crash tests"
	// AppInst has the same rows, and the same code.
	_, insts := fsmtest.Watch(edgecloud.ClusterInst, &fsmtest.CoverConfig{Except: map[string]string{
		"DeletePrepare -PrepareFailed-> CreateError": again, "DeletePrepare -PrepareFailed-> DeleteError": again,
		"DeletePrepare -TimedOut-> Ready": dies, "DeletePrepare -TimedOut-> UpdateError": dies,
		"DeletePrepare -TimedOut-> CreateError": dies, "DeletePrepare -TimedOut-> DeleteError": dies,
	}})
	_, created := fsmtest.Watch(edgecloud.CloudletCreate, nil)
	_, upgraded := fsmtest.Watch(edgecloud.CloudletUpgrade, &fsmtest.CoverConfig{Except: map[string]string{
		"Updating -Gathered-> Ready": "Cloudlets gives the acknowledgement that was missed first",
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
	return lifecycle.Observer{Changed: func(_ context.Context, h lifecycle.HistoryRow) {
		all[h.Machine].Saw(fsm.Moved{From: h.From, Origin: h.FromOrigin, To: h.To, Event: h.Event, Actor: h.Actor, Row: -1})
	}}
}
