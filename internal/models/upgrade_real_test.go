package models

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestUpgradeAsItRuns makes random calls to the Cloudlets of a real Coordinator and
// to the controller of the model, and compares the records: the model has the rules
// that run.
func TestUpgradeAsItRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawSaying), 1, 120).Draw(rt, "script")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = sayBoth(t, script) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// TestUpgradeAsItRunsWithARestart: the same where chance hardly gets to. The old CRM
// starts again in the upgrade, and the new one finishes it or has dropped before.
func TestUpgradeAsItRunsWithARestart(t *testing.T) {
	for _, then := range [][]saying{
		nil,
		{{edgecloud.AckStart, 3}},
		{{edgecloud.Gathered, 3}},
		{{edgecloud.Disconnected, 3}},
		{{edgecloud.Disconnected, 2}},
		{{edgecloud.BringUpFailed, 3}, {edgecloud.KeepOld, 3}},
	} {
		script := slices.Concat([]saying{
			{edgecloud.Upgrade, 0}, {edgecloud.StartUp, 2}, {edgecloud.AckStart, 2}, {edgecloud.StartUp, 3},
		}, then, []saying{{edgecloud.Gathered, 2}, {edgecloud.StartUp, 3}, {edgecloud.Disconnected, 2}, {edgecloud.StartUp, 4}})
		synctest.Test(t, func(t *testing.T) { require.Empty(t, sayBoth(t, script)) })
	}
}

// saying is one call. Odd notify ids are those of the old CRM, even ones of the new.
type saying struct {
	What   edgecloud.CloudletEvent
	Notify int64
}

func drawSaying(t *rapid.T) saying {
	return saying{
		rapid.SampledFrom([]edgecloud.CloudletEvent{
			edgecloud.Upgrade, edgecloud.StartUp, edgecloud.StartUp, edgecloud.AckStart, edgecloud.AckStart,
			edgecloud.Gathered, edgecloud.Gathered, edgecloud.AckUpgrade, edgecloud.BringUpFailed, edgecloud.KeepOld,
			edgecloud.Disconnected, edgecloud.NoAnswer,
		}).Draw(t, "what"),
		rapid.SampledFrom([]int64{1, 1, 1, 2, 2, 2, 3, 4}).Draw(t, "notify id"),
	}
}

func versionOf(notify int64) string {
	if notify%2 == 1 {
		return oldVersion
	}
	return newVersion
}

// sayBoth returns what differs.
func sayBoth(t *testing.T, script []saying) string {
	ctx := t.Context()
	u := &Upgrade{Upgrades: 9}
	c := u.begin()
	real, err := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	require.NoError(t, err)
	l := real.Cloudlets
	for _, err := range []error{
		func() error { _, err := l.StartUp(ctx, "a", 1, oldVersion); return err }(),
		l.Acknowledge(ctx, "a", 1), l.Gathered(ctx, "a", 1),
	} {
		if err != nil {
			return err.Error()
		}
	}
	for i, s := range script {
		var err error
		take := func(_ string, next cloudlet) { c = next }
		switch s.What {
		case edgecloud.Upgrade:
			_, err = l.Upgrade(ctx, "a", newVersion, "")
			u.asks(c, take)
		case edgecloud.AckStart:
			err = l.Acknowledge(ctx, "a", c.At.NotifyID)
			u.acknowledges(c, take)
		case edgecloud.NoAnswer:
			time.Sleep(edgecloud.UpgradeTimeout + time.Minute)
			_, err = real.Sweep(ctx)
			// All that is overdue at once; the model takes one after the other.
			for range 2 {
				u.sweeps(c, take)
			}
		default:
			err = sayReal(t, l, s)
			u.receives(versionOf(s.Notify))(c, message{s.What, s.Notify}, take)
		}
		start, _ := l.Creation(ctx, "a")
		upgrade, _ := l.Upgrading(ctx, "a")
		type both struct {
			Start, Upgrade edgecloud.CloudletState
			At             connections
			To             string
		}
		at := connections{start.Payload.NotifyID, start.Payload.Version, start.Payload.OldNotifyID, start.Payload.OldVersion}
		runs := both{start.State, upgrade.State, at, upgrade.Payload.OldVersion + upgrade.Payload.Version}
		models := both{c.start(), c.upgrade(), c.At, c.To.OldVersion + c.To.Version}
		if runs != models {
			return fmt.Sprintf("after %d of %v: %+v runs (%v), the model has %+v", i+1, script, runs, err, models)
		}
	}
	return ""
}

func sayReal(t *testing.T, l *edgecloud.Cloudlets, s saying) (err error) {
	ctx := t.Context()
	switch s.What {
	case edgecloud.StartUp:
		_, err = l.StartUp(ctx, "a", s.Notify, versionOf(s.Notify))
	case edgecloud.Gathered:
		err = l.Gathered(ctx, "a", s.Notify)
	case edgecloud.AckUpgrade:
		err = l.AckUpgrade(ctx, "a", s.Notify)
	case edgecloud.BringUpFailed:
		err = l.BringUpFailed(ctx, "a", s.Notify, "")
	case edgecloud.KeepOld:
		err = l.KeepOld(ctx, "a", s.Notify)
	case edgecloud.Disconnected:
		_, err = l.Disconnected(ctx, "a", s.Notify)
	}
	return err
}
