package tumblebug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
	"github.com/interlock-go/interlock/queue"
)

// existing returns the MCI m of VMs in these states.
func existing(states ...tumblebug.State) tumblebug.ExistingMci {
	mci := tumblebug.ExistingMci{Name: "m"}
	for i, state := range states {
		mci.VMs = append(mci.VMs, tumblebug.ExistingVM{
			Name: "a-" + string(rune('1'+i)), State: state, VMSpec: tumblebug.VMSpec{SubGroup: "a", Provider: "aws", Region: "r"},
		})
	}
	return mci
}

// The MCI has the state that follows from its VMs.
func TestAddMci(t *testing.T) {
	const (
		running, suspended, terminated, failed, undefined = tumblebug.Running, tumblebug.Suspended, tumblebug.Terminated, tumblebug.Failed, tumblebug.Undefined
	)
	for want, states := range map[string][]tumblebug.State{
		"Running Running:1 (R:1/1)":             {running},
		"Suspended Suspended:2 (R:0/2)":         {suspended, suspended},
		"Failed Failed:1 (R:0/1)":               {failed},
		"Undefined Undefined:1 (R:0/1)":         {undefined},
		"Terminated Terminated:1 (R:0/1)":       {terminated},
		"Running Partial-Failed:2 (R:1/4)":      {failed, running, failed, terminated},
		"Suspended Partial-Suspended:1 (R:1/2)": {running, suspended},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, store := t.Context(), &lifecycle.MemoryStore{KeepHistory: -1}
			s := tumblebug.Must(store, newCloud(), nil)
			status, err := s.AddMci(ctx, "ns", existing(states...))
			require.NoError(t, err)
			require.Equal(t, want, string(status.State)+" "+status.Status)
			now, err := s.Wait(ctx, "ns", "m")
			require.NoError(t, err)
			require.Equal(t, now, status)
			require.NoError(t, s.Close(ctx))
		})
	}
}

// The actions of an MCI that was added are requested from the provider, with the
// attributes that identify the VM there. Its resources are not released: the package has
// not created them.
func TestAddedMciIsOperated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &existingCloud{cloud: newCloud()}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		mci := existing(tumblebug.Running, tumblebug.Suspended)
		mci.Attributes = json.RawMessage(`{"team":"shop"}`)
		for i := range mci.VMs {
			mci.VMs[i].Attributes = json.RawMessage(`"i-0ab"`)
		}
		_, err := s.AddMci(ctx, "ns", mci)
		require.NoError(t, err)
		record, err := s.MCIs().Get(ctx, "ns/m")
		require.NoError(t, err)
		require.JSONEq(t, `{"team":"shop"}`, string(record.Payload.Attributes))
		require.Empty(t, clouds.newCalls())

		_, err = s.HandleMciVmAction(ctx, "ns", "m", "a-2", "resume", false)
		require.NoError(t, err)
		require.Equal(t, "Running:2 (R:2/2)", wait(ctx, t, s).Status)
		_, err = s.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		require.Equal(t, "Terminated:2 (R:0/2)", wait(ctx, t, s).Status)
		require.NoError(t, s.DelMci(ctx, "ns", "m"))
		require.Equal(t, []string{"resume a-2", "terminate a-1", "terminate a-2"}, clouds.newCalls())
		require.NoError(t, s.Close(ctx))
	})
}

// existingCloud identifies VMs by their attributes.
type existingCloud struct{ *cloud }

func (c *existingCloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	if string(vm.Attributes) != `"i-0ab"` {
		return tumblebug.ErrRejected
	}
	return c.cloud.Control(ctx, vm, a)
}

// A refused MCI leaves no record, and the error names what is wrong.
func TestAddMciRefuses(t *testing.T) {
	edited := func(edit func(mci *tumblebug.ExistingMci)) tumblebug.ExistingMci {
		mci := existing(tumblebug.Running, tumblebug.Running)
		edit(&mci)
		return mci
	}
	for name, c := range map[string]struct {
		mci  tumblebug.ExistingMci
		err  error
		text string
	}{
		"transitional":    {existing(tumblebug.Running, tumblebug.Suspending), lifecycle.ErrInvalid, `VM "a-2": state "Suspending" is transitional`},
		"all in creation": {existing(tumblebug.Creating), lifecycle.ErrInvalid, `state "Creating" is transitional`},
		"absent":          {existing(tumblebug.Removed), lifecycle.ErrInvalid, `state "Removed" is absent`},
		"not declared":    {existing("Sleeping"), fsm.ErrUnknownState, "Sleeping"},
		"of MCIs only":    {existing(tumblebug.Prepared), fsm.ErrUnknownState, "Prepared"},
		"none":            {existing(""), fsm.ErrUnknownState, "vm"},
		"without VMs":     {existing(), lifecycle.ErrInvalid, `MCI "m" has no VM`},
		"too many VMs": {edited(func(m *tumblebug.ExistingMci) {
			for i := range tumblebug.MaxVMs {
				m.VMs = append(m.VMs, tumblebug.ExistingVM{Name: fmt.Sprint(i), VMSpec: m.VMs[0].VMSpec})
			}
		}), lifecycle.ErrInvalid, "at most 10000"},
		"name":         {edited(func(m *tumblebug.ExistingMci) { m.Name = "a/b" }), lifecycle.ErrInvalid, `MCI name "a/b"`},
		"name of a VM": {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].Name = ".." }), lifecycle.ErrInvalid, `VM name ".."`},
		"SubGroup":     {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].SubGroup = "" }), lifecycle.ErrInvalid, "SubGroup name"},
		"provider":     {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].Provider = "a b" }), lifecycle.ErrInvalid, "provider name"},
		"region":       {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].Region = "a/b" }), lifecycle.ErrInvalid, "region name"},
		"two VMs":      {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].Name = "a-1" }), lifecycle.ErrInvalid, `two VMs "a-1"`},
		"attributes":   {edited(func(m *tumblebug.ExistingMci) { m.VMs[1].Attributes = json.RawMessage("{") }), lifecycle.ErrInvalid, "payload"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, store := t.Context(), lifecycle.NewMemoryStore()
			s := tumblebug.Must(store, newCloud(), nil)
			_, err := s.AddMci(ctx, "ns", c.mci)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, c.text)
			require.Zero(t, records(t, s))
			require.NoError(t, s.Close(ctx))
		})
	}
	ctx := t.Context()
	s := tumblebug.Must(lifecycle.NewMemoryStore(), newCloud(), nil)
	_, err := s.AddMci(ctx, "a/b", existing(tumblebug.Running))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = s.AddMci(ctx, "ns", existing(tumblebug.Running))
	require.NoError(t, err)
	_, err = s.AddMci(ctx, "ns", existing(tumblebug.Failed, tumblebug.Failed))
	require.ErrorIs(t, err, lifecycle.ErrExists)
	require.Equal(t, 2, records(t, s))
	require.NoError(t, s.Close(ctx))
	_, err = s.AddMci(ctx, "ns", existing(tumblebug.Running))
	require.ErrorIs(t, err, queue.ErrTerminated)
}

// records counts the records of MCIs and VMs.
func records(t *testing.T, s *tumblebug.System) (n int) {
	t.Helper()
	for _, err := range s.MCIs().All(t.Context(), lifecycle.Select[tumblebug.State]{}) {
		require.NoError(t, err)
		n++
	}
	for _, err := range s.VMs().All(t.Context(), lifecycle.Select[tumblebug.State]{}) {
		require.NoError(t, err)
		n++
	}
	return n
}
