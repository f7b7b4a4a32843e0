package blazar_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// An update replaces the attributes with the rest of the content; if it is refused or
// fails, those from before stay.
func TestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var answer error
		s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Update: func(context.Context, blazar.Allocation) error { return answer },
		}}})
		spec := inAnHour("host")
		spec.Attributes = json.RawMessage(`{"zone":"a"}`)
		require.JSONEq(t, `{"zone":"a"}`, string(createLease(t, s, spec).Spec.Attributes))
		update := func(attributes string, want error, has string) {
			t.Helper()
			_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: spec.End.Add(time.Hour), Attributes: json.RawMessage(attributes)})
			require.ErrorIs(t, err, want)
			spec.End = spec.End.Add(time.Minute)
			lease, err := s.GetLease(ctx, "l")
			require.NoError(t, err)
			require.Equal(t, has, string(lease.Spec.Attributes))
		}
		update(`{"zone":"b"}`, nil, `{"zone":"b"}`)
		update("", nil, `{"zone":"b"}`)
		answer = blazar.ErrRefused
		update(`{"zone":"c"}`, blazar.ErrRefused, `{"zone":"b"}`)
		answer = errors.New("power cut")
		update(`{"zone":"c"}`, answer, `{"zone":"b"}`)
		requireLease(t, s, "l", blazar.LeaseError)
		update(`null`, answer, `{"zone":"b"}`)
	})
}

// Attributes that are not JSON, or too large, are refused before any plugin is called.
func TestBadAttributes(t *testing.T) {
	for name, text := range map[string]string{
		"cut":       "{",
		"text":      "no JSON",
		"too large": `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), newChecked(t)
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
					Update: func(context.Context, blazar.Allocation) error { t.Error("called"); return nil },
				}}})
				createLease(t, s, inAnHour("host"))
				store.take()
				bad := json.RawMessage(text)
				spec := inAnHour("host")
				spec.Attributes = bad
				_, err := s.CreateLease(ctx, "m", spec)
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				_, err = s.AddLease(ctx, "m", blazar.LeasePending, spec)
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				_, err = s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: time.Now().Add(9 * time.Hour), Attributes: bad})
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				require.Empty(t, store.take())
			})
		})
	}
}

// Leases that exist already are added at rest, with reservations and events that match,
// and end like those that were created.
func TestAddLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		var mu sync.Mutex
		var released []string
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			OnEnd: func(_ context.Context, a blazar.Allocation) error {
				mu.Lock()
				defer mu.Unlock()
				released = append(released, a.Lease+" "+a.ResourceID)
				return nil
			},
		}}})
		spec := blazar.LeaseSpec{
			Start: time.Now().Add(-time.Hour), End: time.Now().Add(time.Hour),
			Reservations: []blazar.Request{{Resource: "host", Amount: 2, ResourceID: "rack-7"}},
		}
		for _, status := range []blazar.LeaseState{blazar.LeaseActive, blazar.LeaseTerminated, blazar.LeaseError} {
			lease, err := s.AddLease(ctx, string(status), status, spec)
			require.NoError(t, err)
			require.Equal(t, status, lease.Status)
			require.Equal(t, "rack-7", lease.Reservations[0].ResourceID)
			require.Len(t, lease.Events, 2)
		}
		pending := spec
		pending.Start = time.Now().Add(30 * time.Minute)
		_, err := s.AddLease(ctx, "PENDING", blazar.LeasePending, pending)
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		_, err = s.Process(ctx)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"ACTIVE rack-7", "ERROR rack-7", "PENDING rack-7"}, released)
		leases, err := s.ListLeases(ctx)
		require.NoError(t, err)
		for _, lease := range leases {
			require.Equal(t, blazar.LeaseTerminated, lease.Status, lease.ID)
		}
		store.requireNoFaults(t)
	})
}

// A lease that is not at rest, or cannot be one, is not added.
func TestAddLeaseRefusals(t *testing.T) {
	ctx, store := t.Context(), newChecked(t)
	s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
	createLease(t, s, inAnHour("host"))
	store.take()
	backwards := inAnHour("host")
	backwards.End = backwards.Start
	for name, c := range map[string]struct {
		id     string
		status blazar.LeaseState
		spec   blazar.LeaseSpec
		want   error
		text   string
	}{
		"transitional status": {"m", blazar.LeaseStarting, inAnHour("host"), lifecycle.ErrInvalid, `state "STARTING" is transitional`},
		"absent":              {"m", blazar.LeaseAbsent, inAnHour("host"), lifecycle.ErrInvalid, `state "ABSENT" is absent`},
		"unknown status":      {"m", "FLYING", inAnHour("host"), fsm.ErrUnknownState, "FLYING"},
		"no plugin":           {"m", blazar.LeaseActive, inAnHour("gpu"), lifecycle.ErrInvalid, `"gpu"`},
		"end before start":    {"m", blazar.LeaseActive, backwards, lifecycle.ErrInvalid, "after the start"},
		"id with a slash":     {"m/n", blazar.LeaseActive, inAnHour("host"), lifecycle.ErrInvalid, "slash"},
		"id of another one":   {"l", blazar.LeaseActive, inAnHour("host"), lifecycle.ErrExists, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.AddLease(ctx, c.id, c.status, c.spec)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
	assigned := inAnHour("host")
	assigned.Reservations[0].ResourceID = "rack-7"
	_, err := s.CreateLease(ctx, "m", assigned)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "rack-7")
	require.Empty(t, store.take())
}

// A record that cannot be read hides no other lease, and keeps none from its start.
func TestForeignRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		for _, id := range []string{"a", "b", "c"} {
			_, err := s.CreateLease(ctx, id, inAnHour("host"))
			require.NoError(t, err)
		}
		store.Committed = nil
		lease, err := s.GetLease(ctx, "b")
		require.NoError(t, err)
		scripttest.Plant(t, store, lifecycle.Key{Machine: "lease", ID: "a"}, func(c *lifecycle.StoredChange) {
			c.To.State, c.To.Origin = "FLYING", "FLYING"
		})
		scripttest.MakeForeign(t, store, lifecycle.Key{Machine: "event", ID: lease.Events[0].ID})
		leases, err := s.ListLeases(ctx)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		require.ErrorContains(t, err, `"a"`)
		require.Len(t, leases, 1)
		for range 2 { // starts and ends
			time.Sleep(time.Hour)
			_, err = s.Process(ctx)
			require.ErrorIs(t, err, lifecycle.ErrForeign)
		}
		requireLease(t, s, "c", blazar.LeaseTerminated)
	})
}
