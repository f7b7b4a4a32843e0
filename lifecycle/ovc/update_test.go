package ovc_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// Every status of an object with every other one: UpdateStatus does what the document's tables
// have and refuses everything else. A transition state leads to the desired state and to the
// origin.
func TestUpdateStatusOverAllPairs(t *testing.T) {
	ctx := t.Context()
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	n := 0
	// put makes an object that is in a state, by way of another one.
	put := func(kind ovc.Kind, states ...ovc.State) string {
		n++
		id := fmt.Sprint("o", n)
		rec, err := s.Add(ctx, kind, id, "", ovc.Model{})
		require.NoError(t, err)
		if rec.State != states[0] {
			_, err = s.Objects(kind).Override(ctx, id, states[0], ovc.API, "test", nil)
			require.NoError(t, err)
		}
		for i, to := range states[1:] {
			_, err = s.UpdateStatus(ctx, kind, id, states[i], to)
			require.NoError(t, err)
		}
		return id
	}
	try := func(kind ovc.Kind, want []ovc.State, through ...ovc.State) {
		at := through[len(through)-1]
		for _, to := range append(slices.Collect(kind.Machine().States()), "FLYING", "") {
			id := put(kind, through...)
			rec, err := s.UpdateStatus(ctx, kind, id, at, to)
			if slices.Contains(want, to) {
				require.NoError(t, err, "%s %v to %s", kind, through, to)
				require.Equal(t, to, rec.State)
				continue
			}
			require.ErrorIs(t, err, fsm.ErrNotAllowed, "%s %v to %s", kind, through, to)
			require.Equal(t, http.StatusConflict, lifecycle.HTTPStatus(err))
			rec, err = s.Get(ctx, kind, id)
			require.NoError(t, err)
			require.Equal(t, at, rec.State)
		}
	}
	begins := map[row][]ovc.State{}
	for _, r := range documentRows() {
		from := row{r.kind, r.initial, "", ""}
		begins[from] = append(begins[from], r.transition)
		try(r.kind, []ovc.State{r.desired, r.initial}, r.initial, r.transition)
	}
	for kind := range ovc.Kinds() {
		for at := range kind.Machine().States() {
			if !ovc.IsTransition(at) {
				try(kind, begins[row{kind, at, "", ""}], at)
			}
		}
	}
}

// An unexpected status is refused with the text of the document.
func TestUpdateStatusOfAnotherStatus(t *testing.T) {
	ctx := t.Context()
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	for kind := range ovc.Kinds() {
		rec, err := s.Add(ctx, kind, "7", "", ovc.Model{})
		require.NoError(t, err)
		names := append(slices.Collect(kind.Machine().States()), "FLYING", "")
		for _, status := range names {
			for _, to := range names {
				for _, id := range []string{"7", "8"} {
					if id == "7" && status == rec.State {
						continue
					}
					_, err := s.UpdateStatus(ctx, kind, id, status, to)
					require.ErrorIs(t, err, ovc.ErrOtherAction)
					require.EqualError(t, err, fmt.Sprintf("409 Conflict: Other action currently happening on %s ID: %s", kind, id))
					require.Equal(t, http.StatusConflict, lifecycle.HTTPStatus(err))
					require.Equal(t, id == "8", errors.Is(err, lifecycle.ErrNotFound))
				}
			}
		}
		now, err := s.Get(ctx, kind, "7")
		require.NoError(t, err)
		require.Equal(t, rec, now)
	}
}
