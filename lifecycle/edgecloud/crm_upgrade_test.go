package edgecloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// fleet starts and ends the CRMs of cloudlet b.
type fleet struct {
	t        *testing.T
	c        *edgecloud.Coordinator
	crm      *edgecloud.ResourceManager // the new one
	noImage  error                      // why StartNew fails
	unread   error                      // why the platform of the new CRM cannot be read
	late     bool                       // the new CRM connects, and gathers its data later
	running  map[string]int64           // notify ids by version
	attempts int
}

func (f *fleet) Do(context.Context, edgecloud.Order) (json.RawMessage, error) { return nil, nil }
func (f *fleet) Present(context.Context) ([]lifecycle.Key, error)             { return nil, f.unread }

func (f *fleet) StartNew(ctx context.Context, version string) error {
	f.attempts++
	if f.running[version] != 0 {
		return nil
	}
	id, err := f.c.Cloudlets.NewNotifyID(ctx, "b")
	require.NoError(f.t, err)
	f.running[version] = id
	if f.noImage != nil {
		return f.noImage
	}
	_, err = f.c.Cloudlets.StartUp(ctx, "b", id, version)
	require.NoError(f.t, err)
	require.NoError(f.t, f.c.Cloudlets.Acknowledge(ctx, "b", id))
	if f.late {
		return nil
	}
	return f.crm.Gather(ctx, f, f.c.Uplink("b", id))
}

func (f *fleet) RemoveNew(context.Context) error { delete(f.running, "v2"); return nil }
func (f *fleet) EndOld(context.Context) error    { delete(f.running, "v1"); return nil }

// upgrade lets the old CRM act on the controller's state.
func (f *fleet) upgrade() error {
	now, err := f.c.Cloudlets.Upgrading(f.t.Context(), "b")
	require.NoError(f.t, err)
	return f.crm.Upgrade(f.t.Context(), now.State, now.Payload.Version, f, f.c.Uplink("b", 1))
}

func (f *fleet) require(start, upgrade edgecloud.CloudletState, running ...string) {
	f.t.Helper()
	at, err := f.c.Cloudlets.Creation(f.t.Context(), "b")
	require.NoError(f.t, err)
	now, err := f.c.Cloudlets.Upgrading(f.t.Context(), "b")
	require.NoError(f.t, err)
	require.Equal(f.t, []edgecloud.CloudletState{start, upgrade}, []edgecloud.CloudletState{at.State, now.State})
	require.Len(f.t, f.running, len(running))
	for _, version := range running {
		require.Contains(f.t, f.running, version)
	}
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, c: newCoordinator(t, lifecycle.NewMemoryStore()), running: map[string]int64{"v1": 1}}
	var err error
	f.crm, err = edgecloud.NewResourceManager(f, func(context.Context, lifecycle.Key, edgecloud.Report) error { return nil })
	require.NoError(t, err)
	_, err = f.c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")
	require.NoError(t, err)
	return f
}

// Both CRMs of an upgrade do their part.
func TestCRMsUpgrade(t *testing.T) {
	f := newFleet(t)
	require.NoError(t, f.upgrade())
	f.require(edgecloud.CloudletReady, edgecloud.CloudletReady, "v2")
	require.NoError(t, f.upgrade(), "there is nothing to do")
	require.Equal(t, 1, f.attempts)
}

var errLost = errors.New("no answer")

// losing loses the answers to Gathered.
func losing(to edgecloud.Uplink) edgecloud.Uplink {
	gathered := to.Gathered
	to.Gathered = func(ctx context.Context) error {
		if err := gathered(ctx); err != nil {
			return err
		}
		return errLost
	}
	return to
}

// The answer to the last report of a CRM is lost. It gathers again: after a start, after
// the upgrade that has started it, and after the next upgrade was requested.
func TestGatherAgain(t *testing.T) {
	ctx := t.Context()
	f := newFleet(t)
	f.late = true
	gathersAgain := func(version string, upgrade edgecloud.CloudletState) {
		t.Helper()
		to := f.c.Uplink("b", f.running[version])
		require.NoError(t, f.crm.Gather(ctx, nil, to))
		f.require(edgecloud.CloudletReady, upgrade, version)
	}
	gathersAgain("v1", edgecloud.CloudletUpdateRequested)
	require.NoError(t, f.upgrade())
	require.ErrorIs(t, f.crm.Gather(ctx, f, losing(f.c.Uplink("b", f.running["v2"]))), errLost)
	gathersAgain("v2", edgecloud.CloudletReady)
	_, err := f.c.Cloudlets.Upgrade(ctx, "b", "v3", "")
	require.NoError(t, err)
	gathersAgain("v2", edgecloud.CloudletUpdateRequested)
}

// The old CRM crashes in every state of an upgrade and does its part again.
func TestOldCRMCrashes(t *testing.T) {
	ctx := t.Context()
	f := newFleet(t)
	require.NoError(t, f.c.Cloudlets.AckUpgrade(ctx, "b", 1))
	f.late = true
	require.NoError(t, f.upgrade())
	f.require(edgecloud.CloudletInitOk, edgecloud.CloudletInitOk, "v1", "v2")
	require.NoError(t, f.upgrade())
	f.require(edgecloud.CloudletInitOk, edgecloud.CloudletInitOk, "v1", "v2")
	require.NoError(t, f.crm.Gather(ctx, f, f.c.Uplink("b", f.running["v2"])))
	f.require(edgecloud.CloudletReady, edgecloud.CloudletReady, "v2")
}

// The new CRM cannot be started: the old one removes it and continues, also if it
// crashes before it reports that.
func TestNewCRMCannotStart(t *testing.T) {
	f := newFleet(t)
	f.noImage = errors.New("no image")
	require.ErrorIs(t, f.upgrade(), f.noImage)
	f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdateError, "v1")
	now, err := f.c.Cloudlets.Upgrading(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, "no image", now.Reason)
	require.NoError(t, f.upgrade(), "it continues")
	f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdateError, "v1")
	require.Equal(t, 1, f.attempts)
}

// The new CRM cannot read its platform: it exits, and the old CRM continues.
func TestNewCRMCannotGather(t *testing.T) {
	f := newFleet(t)
	f.late = true
	require.NoError(t, f.upgrade())
	f.unread = errors.New("no API")
	require.ErrorIs(t, f.crm.Gather(t.Context(), f, f.c.Uplink("b", f.running["v2"])), f.unread)
	f.require(edgecloud.CloudletOffline, edgecloud.CloudletInitOk, "v1", "v2")
	f.unread, f.noImage = nil, errors.New("no API")
	delete(f.running, "v2")
	require.ErrorIs(t, f.upgrade(), f.noImage)
	f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdateError, "v1")
}

// faulty fails in one step of the old CRM's part, and counts the others.
type faulty struct {
	*fleet
	step  string
	steps []string
}

var errStep = errors.New("it does not work")

func (f *faulty) take(step string) error {
	f.steps = append(f.steps, step)
	if step == f.step {
		return errStep
	}
	return nil
}

func (f *faulty) StartNew(context.Context, string) error {
	f.steps = append(f.steps, "StartNew")
	return f.noImage
}

func (f *faulty) RemoveNew(context.Context) error { return f.take("RemoveNew") }

func (f *faulty) uplink() edgecloud.Uplink {
	to := f.c.Uplink("b", 1)
	ack, failed, keep := to.AckUpgrade, to.BringUpFailed, to.KeepOld
	to.AckUpgrade = func(ctx context.Context) error { return errors.Join(ack(ctx), f.take("AckUpgrade")) }
	to.BringUpFailed = func(ctx context.Context, reason string) error {
		return errors.Join(failed(ctx, reason), f.take("BringUpFailed"))
	}
	to.KeepOld = func(ctx context.Context) error { return errors.Join(keep(ctx), f.take("KeepOld")) }
	return to
}

// The new CRM cannot be started, and another step of the old CRM fails too, or the answer to
// it is lost. The old CRM takes no further step then. It reads the controller's state, does
// its part again, and continues.
func TestStepOfOldCRMFails(t *testing.T) {
	ctx := t.Context()
	for step, want := range map[string][]string{
		"AckUpgrade":    {"AckUpgrade", "StartNew", "RemoveNew", "BringUpFailed", "KeepOld"},
		"RemoveNew":     {"AckUpgrade", "StartNew", "RemoveNew", "StartNew", "RemoveNew", "BringUpFailed", "KeepOld"},
		"BringUpFailed": {"AckUpgrade", "StartNew", "RemoveNew", "BringUpFailed", "KeepOld"},
		"KeepOld":       {"AckUpgrade", "StartNew", "RemoveNew", "BringUpFailed", "KeepOld", "KeepOld"},
	} {
		t.Run(step, func(t *testing.T) {
			f := &faulty{fleet: newFleet(t), step: step}
			f.noImage = errors.New("no image")
			upgrade := func() error {
				now, err := f.c.Cloudlets.Upgrading(ctx, "b")
				require.NoError(t, err)
				return f.crm.Upgrade(ctx, now.State, now.Payload.Version, f, f.uplink())
			}
			err := upgrade()
			require.ErrorIs(t, err, errStep)
			require.Equal(t, step != "AckUpgrade", errors.Is(err, f.noImage))
			f.step = ""
			if err = upgrade(); err != nil {
				require.ErrorIs(t, err, f.noImage)
			}
			require.Equal(t, want, f.steps)
			f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdateError, "v1")
		})
	}
}

// The context of the old CRM ends while it starts the new one. That is no failure of the new
// CRM: it is not removed, and the upgrade continues.
func TestUpgradeIsCancelled(t *testing.T) {
	f := &faulty{fleet: newFleet(t)}
	f.noImage = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	to := f.uplink()
	ack := to.AckUpgrade
	to.AckUpgrade = func(ctx context.Context) error { defer cancel(); return ack(ctx) }
	require.ErrorIs(t, f.crm.Upgrade(ctx, edgecloud.CloudletUpdateRequested, "v2", f, to), context.Canceled)
	require.Equal(t, []string{"AckUpgrade", "StartNew"}, f.steps)
	f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdating, "v1")
}
