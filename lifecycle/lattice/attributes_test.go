package lattice_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// The attributes of a system, a deploy and a teardown are in their records, and the
// infrastructure has those of the action.
func TestAttributes(t *testing.T) {
	ctx := t.Context()
	var seen []string
	see := func(_ context.Context, r lattice.Running) error {
		seen = append(seen, string(r.Attributes))
		return nil
	}
	c, err := lattice.Start(ctx, lifecycle.NewMemoryStore(), lattice.Infrastructure{Build: see, Deploy: see, Teardown: see}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(ctx)) }()
	h, err := c.CreateSystem(ctx, "shop", json.RawMessage(`{"owner":"ops"}`))
	require.NoError(t, err)
	rec, err := h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, `{"owner":"ops"}`, string(rec.Payload.Attributes))
	_, err = c.Deploy(ctx, "shop", "d", lock.Root(), json.RawMessage(`{"version":2}`))
	require.NoError(t, err)
	d, err := c.WaitDeploy(ctx, "shop", "d")
	require.NoError(t, err)
	require.Equal(t, `{"version":2}`, string(d.Payload.Attributes))
	_, err = c.Teardown(ctx, "shop", "t", json.RawMessage(`"for good"`))
	require.NoError(t, err)
	down, err := c.WaitTeardown(ctx, "shop", "t")
	require.NoError(t, err)
	require.Equal(t, `"for good"`, string(down.Payload.Attributes))
	require.Equal(t, []string{`{"version":2}`, `{"version":2}`, `"for good"`}, seen)

	// Nothing changes: the records of an earlier system of the name are kept too.
	deleteSystem(t, c, "shop")
	for name, text := range map[string]string{"not JSON": "{", "too large": `"` + strings.Repeat("x", 1<<20) + `"`} {
		t.Run(name, func(t *testing.T) {
			bad := json.RawMessage(text)
			_, err := c.CreateSystem(ctx, "shop", bad)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.AddSystem(ctx, "shop", lattice.Stable, bad)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.Deploys().Get(ctx, "shop/d")
			require.NoError(t, err)
		})
	}
	_, err = c.AddSystem(ctx, "shop", lattice.Stable, nil)
	require.NoError(t, err)
	_, err = c.Deploy(ctx, "shop", "e", lock.Root(), json.RawMessage("{"))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = c.Teardown(ctx, "shop", "e", json.RawMessage("{"))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Empty(t, slices.Collect(c.Actions().Systems()))
}

// A system that exists already is added at rest. It follows its services, and deploys of it
// run.
func TestAddSystem(t *testing.T) {
	ctx := t.Context()
	c, err := lattice.Start(ctx, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(ctx)) }()
	for _, state := range []lattice.State{lattice.Stable, lattice.Failed, lattice.Degraded} {
		rec, err := c.AddSystem(ctx, lattice.SystemID(state), state, json.RawMessage(`1`))
		require.NoError(t, err)
		require.Equal(t, state, rec.State)
		require.Equal(t, `1`, string(rec.Payload.Attributes))
	}
	require.NoError(t, c.SetService(ctx, "stable", lock.MustParse("/web"), lattice.ServiceScaling))
	rec, err := c.Systems().Get(ctx, "stable")
	require.NoError(t, err)
	require.Equal(t, lattice.Scaling, rec.State)
	require.Equal(t, `1`, string(rec.Payload.Attributes))
	_, err = c.Deploy(ctx, "degraded", "d", lock.Root(), nil)
	require.NoError(t, err)
	d, err := c.WaitDeploy(ctx, "degraded", "d")
	require.NoError(t, err)
	require.Equal(t, lattice.ActionSucceeded, d.State)
	for name, x := range map[string]struct {
		system lattice.SystemID
		state  lattice.State
		want   error
		text   string
	}{
		"updating":          {"x", lattice.Updating, lifecycle.ErrInvalid, `state "updating" is transitional`},
		"pending":           {"x", lattice.Pending, lifecycle.ErrInvalid, `state "pending" is transitional`},
		"absent":            {"x", lattice.DoesNotExist, lifecycle.ErrInvalid, `state "does-not-exist" is absent`},
		"unknown state":     {"x", "flying", fsm.ErrUnknownState, "flying"},
		"id with a slash":   {"x/y", lattice.Stable, lifecycle.ErrInvalid, "x/y"},
		"id of another one": {"failed", lattice.Stable, lifecycle.ErrExists, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.AddSystem(ctx, x.system, x.state, nil)
			require.ErrorIs(t, err, x.want)
			require.ErrorContains(t, err, x.text)
		})
	}
}

// A deploy that cannot be read locks its system, unless it is pending, and keeps no other
// one. A sweep names it.
func TestForeignRecords(t *testing.T) {
	ctx, store := t.Context(), lifecycle.NewMemoryStore()
	add := func(table *fsm.Table, id, state, payload string) {
		scripttest.Plant(t, store, lifecycle.Key{Machine: table.Name, ID: id}, func(c *lifecycle.StoredChange) {
			c.To.State, c.To.Origin, c.To.Actor, c.To.Payload = state, state, lattice.Backend, []byte(payload)
		})
	}
	add(lattice.System.Table(), "a", "stable", "")
	add(lattice.System.Table(), "b", "stable", "")
	add(lattice.System.Table(), "c", "stable", "")
	add(lattice.System.Table(), "d", "stable", "")
	add(lattice.Service.Table(), "a/web", "flying", "")
	add(lattice.Service.Table(), "b/web", "degraded", "")
	add(lattice.Deploy.Table(), "c/d", "in progress", `"of another version"`)
	add(lattice.Deploy.Table(), "b/d", "accepted", `{"system":"b"}`)
	add(lattice.Deploy.Table(), "d/d", "pending", `"of another version"`)
	c, err := lattice.Start(ctx, store, lattice.Infrastructure{}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(ctx)) }()
	d, err := c.WaitDeploy(ctx, "b", "d")
	require.NoError(t, err)
	require.Equal(t, lattice.ActionSucceeded, d.State)
	rec, err := c.Systems().Get(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, lattice.Degraded, rec.State)
	_, err = c.Deploy(ctx, "c", "e", lock.MustParse("/web"), nil)
	require.NoError(t, err)
	d, err = c.WaitDeploy(ctx, "c", "e")
	require.NoError(t, err)
	require.Equal(t, "unable to acquire lifecycle lock: locked by deploys d", d.Reason)
	_, err = c.Deploy(ctx, "d", "e", lock.MustParse("/web"), nil)
	require.NoError(t, err)
	d, err = c.WaitDeploy(ctx, "d", "e")
	require.NoError(t, err)
	require.Equal(t, lattice.ActionSucceeded, d.State)
	_, err = c.Sweep(ctx)
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.ErrorContains(t, err, `"c/d"`)
	require.ErrorContains(t, err, `"d/d"`)
	require.ErrorContains(t, err, `"a/web"`)
}
