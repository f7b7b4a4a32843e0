package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// foreignRow writes a record as another program would: without a sequence number.
func foreignRow(t *testing.T, store lifecycle.Store, id, state, origin, payload string) {
	t.Helper()
	require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{
		Token: lifecycle.NewToken(),
		Changes: []lifecycle.StoredChange{{
			Expect: storedAt(t, store, lifecycle.Key{Machine: "vm", ID: id}).Revision,
			To: lifecycle.StoredRecord{
				Key: lifecycle.Key{Machine: "vm", ID: id}, State: state, Origin: origin, Payload: []byte(payload),
			},
		}},
	}))
}

// TestAdopt: objects of another program get a first history row and a deadline, and those
// that fit no state are reported. A second call changes nothing.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := lifecycle.Must(sizedVM, store, nil)
		resting, transitional := "", ""
		for _, s := range sizedVM.Table().States {
			switch {
			case s.Kind.Resting() && resting == "" && s.Name != "None":
				resting = s.Name
			case !s.Kind.Resting() && transitional == "":
				transitional = s.Name
			}
		}
		foreignRow(t, store, "rests", resting, resting, `{"N":1}`)
		foreignRow(t, store, "moves", transitional, resting, `{"N":2}`)
		foreignRow(t, store, "no origin", transitional, transitional, `{}`)
		foreignRow(t, store, "no state", "Weird", "Weird", `{}`)
		foreignRow(t, store, "absent", "None", "None", `{}`)
		foreignRow(t, store, "no payload", resting, resting, `[]`)

		_, _, err := lifecycle.Adopt(t.Context(), m, user, " ")
		require.ErrorIs(t, err, lifecycle.ErrInvalid)

		adopted, unplaced, err := lifecycle.Adopt(t.Context(), m, "migration", "ticket 7")
		require.NoError(t, err)
		require.Equal(t, 2, adopted)
		why := map[string]error{}
		for _, r := range unplaced {
			why[r.ID] = r.Err
		}
		require.Len(t, why, 4)
		require.ErrorIs(t, why["no state"], lifecycle.ErrForeign)
		require.ErrorContains(t, why["no state"], `lifecycle: adopt vm "no state": `)
		require.ErrorIs(t, why["no payload"], lifecycle.ErrForeign)
		require.EqualError(t, why["no origin"], `lifecycle: adopt vm "no origin": invalid request: the state `+transitional+` is transitional, and the record has no origin`)
		require.EqualError(t, why["absent"], `lifecycle: adopt vm "absent": invalid request: the object is in the absent state None`)

		r := get(t, m, "moves")
		require.Equal(t, []any{state(transitional), state(resting), lifecycle.OpID(1), uint64(1), 2}, []any{r.State, r.Origin, r.Operation, r.Sequence, r.Payload.N})
		require.False(t, r.Deadline.IsZero())
		rows := rowsOf(t, m, "rests", 0, 0)
		last := rows[len(rows)-1]
		require.Equal(t, []string{resting, lifecycle.Overridden, resting, "migration", "ticket 7"}, []string{last.From, last.Event, last.To, string(last.Actor), last.Reason})

		adopted, unplaced, err = lifecycle.Adopt(t.Context(), m, "migration", "again")
		require.NoError(t, err)
		require.Zero(t, adopted)
		require.Len(t, unplaced, 4)
		time.Sleep(time.Until(r.Deadline) + time.Nanosecond)
		results := sweep(t, m)
		require.Equal(t, "moves", results[0].ID)
		require.Equal(t, lifecycle.Moved, results[0].Resolution)

		ended, stop := context.WithCancel(t.Context())
		stop()
		_, _, err = lifecycle.Adopt(ended, m, "migration", "again")
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAdoptMeetsOthers: another process and the other program write meanwhile, and what no
// later object can escape ends Adopt.
func TestAdoptMeetsOthers(t *testing.T) {
	for name, x := range map[string]struct {
		commit   func(store *hooked, cancel func()) error // of the first of two objects
		adopted  int
		unplaced string // the error of the first object
		err      error
	}{
		"another process adopts it": {commit: func(store *hooked, _ func()) error {
			_, _, err := lifecycle.Adopt(t.Context(), store.others(), "migration", "the other one")
			require.NoError(t, err)
			return nil
		}},
		"the other program changes it": {commit: func(store *hooked, _ func()) error {
			r := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "a"})
			require.NoError(t, store.MemoryStore.Commit(t.Context(), &lifecycle.Commit{
				Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: r.Revision, From: r.State, To: r}},
			}))
			return nil
		}, adopted: 1, unplaced: `lifecycle: adopt vm "a" by migration in Ready: conflict: vm "a" is expected at revision "1" and is Ready at "2"`},
		"bad":         {commit: func(*hooked, func()) error { return errBoom }, adopted: 1, unplaced: `lifecycle: adopt vm "a" by migration in Ready: boom`},
		"unavailable": {commit: func(*hooked, func()) error { return lifecycle.ErrUnavailable }, err: lifecycle.ErrUnavailable},
		"unknown":     {commit: func(*hooked, func()) error { return lifecycle.ErrUnknownOutcome }, err: lifecycle.ErrUnknownOutcome},
		"closed":      {commit: func(*hooked, func()) error { return lifecycle.ErrClosed }, err: lifecycle.ErrClosed},
		"canceled":    {commit: func(_ *hooked, cancel func()) error { cancel(); return errBoom }, err: errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, store := vms(t)
				foreignRow(t, store, "a", "Ready", "Ready", `{}`)
				foreignRow(t, store, "b", "Ready", "Ready", `{}`)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
					if c.Changes[0].To.ID == "a" {
						if err := x.commit(store, cancel); err != nil {
							return err
						}
					}
					return write()
				}
				adopted, unplaced, err := lifecycle.Adopt(ctx, m, "migration", "ticket 7")
				require.ErrorIs(t, err, x.err)
				require.Equal(t, x.adopted, adopted)
				if x.unplaced == "" {
					require.Empty(t, unplaced)
					return
				}
				require.Len(t, unplaced, 1)
				require.EqualError(t, unplaced[0].Err, x.unplaced)
			})
		})
	}
}

// TestAdoptWithVersions: another program writes no versions. Its objects are of the version
// of new objects, unless an older version has no name.
func TestAdoptWithVersions(t *testing.T) {
	for name, x := range map[string]struct {
		config      lifecycle.Config[string]
		state, want string // of the record, and as the manager reads it
		version     string // after the adoption
	}{
		"one version":       {lifecycle.Config[string]{Version: "1"}, "Available", "Available", "1"},
		"before the switch": {lifecycle.Config[string]{Version: "2", Older: []lifecycle.Version{named1()}}, "Ready", "Available", "1"},
		"after the switch":  {lifecycle.Config[string]{Version: "2", Older: []lifecycle.Version{named1()}, Switch: true}, "Available", "Available", "2"},
		"without a name":    {lifecycle.Config[string]{Version: "2", Older: []lifecycle.Version{firstDisk()}, Switch: true}, "Ready", "Available", ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			r := diskAt(t, store, "a")
			r.State, r.Origin = x.state, x.state
			require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{
				Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: r.Revision, To: r}},
			}))
			m := lifecycle.Must(disk2, store, &x.config)
			require.Equal(t, x.want, get(t, m, "a").State)
			for _, e := range explain(t, m, "a").Actors[0].Events {
				if e.Event == "pause" { // to a state that only the new version has
					require.Equal(t, x.version == x.config.Version, e.Possible)
				}
			}
			adopted, unplaced, err := lifecycle.Adopt(t.Context(), m, "root", "import")
			require.NoError(t, err)
			require.Empty(t, unplaced)
			require.Equal(t, 1, adopted)
			require.Equal(t, []string{x.state, x.version}, []string{diskAt(t, store, "a").State, diskAt(t, store, "a").Version})
			require.Equal(t, x.want, get(t, m, "a").State)
		})
	}
}

// named1 is firstDisk with a name.
func named1() lifecycle.Version {
	v := firstDisk()
	v.Name = "1"
	return v
}
