package lifecycle_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestFireOvertaken: another writer moves the object between load and commit. Fire
// returns at once, with the record that won.
func TestFireOvertaken(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	store.reset()
	var won lifecycle.Record[state, size]
	store.afterGet = func(int) {
		won = fire(t, store.others(), "a", "update", user, resize(7))
	}
	_, err := m.Fire(t.Context(), "a", "delete", user, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.NotErrorIs(t, err, lifecycle.ErrExists)
	require.Equal(t, 409, lifecycle.HTTPStatus(err))
	require.EqualError(t, err, `lifecycle: fire vm "a": delete by user in Ready: `+
		`conflict: vm "a" is expected Ready at revision "2" and is Updating at "3"`)
	require.Equal(t, 1, store.commits, "Fire tried again")
	winner := winnerOf(t, m, err)
	require.Equal(t, won, winner)
	require.Equal(t, size{N: 7}, winner.Payload)
	store.reset()
	require.Equal(t, won, get(t, m, "a"))
}

// TestFireOvertakenByItself: a self transition moves the object too, and so does
// a removal with a new object in the same state.
func TestFireOvertakenByItself(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, m *sizedManager){
		"self transition": func(t *testing.T, m *sizedManager) {
			fire(t, m, "a", "touch", user, nil)
		},
		"removed and made again": func(t *testing.T, m *sizedManager) {
			fire(t, m, "a", "delete", user, nil)
			fire(t, m, "a", "done", agent, nil)
			create(t, m, "a", "import", user, size{N: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, store := vms(t)
			create(t, m, "a", "import", user, size{N: 1})
			store.reset()
			store.afterGet = func(int) { meanwhile(t, store.others()) }
			_, err := m.Fire(t.Context(), "a", "update", user, nil)
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.Equal(t, state("Ready"), winnerOf(t, m, err).State)
		})
	}
}

// TestFireOvertakenByRemoval: the object was removed, so the conflict has no record.
func TestFireOvertakenByRemoval(t *testing.T) {
	m, store := vms(t)
	create(t, m, "a", "import", user, size{})
	fire(t, m, "a", "delete", user, nil)
	store.reset()
	store.afterGet = func(int) {
		fire(t, store.others(), "a", "done", agent, nil)
	}
	_, err := m.Fire(t.Context(), "a", "done", agent, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.NotErrorIs(t, err, lifecycle.ErrNotFound)
	_, ok := lifecycle.Current(m, err)
	require.False(t, ok)
	require.EqualError(t, err, `lifecycle: fire vm "a": done by agent in Deleting: `+
		`conflict: vm "a" is expected Deleting at revision "2" and is absent at "3"`)
}

// TestCurrentOfNothing: other errors carry no winner, and a conflict of another
// machine is not ours.
func TestCurrentOfNothing(t *testing.T) {
	m, _ := vms(t)
	for _, err := range []error{nil, errors.New("x"), lifecycle.ErrConflict, lifecycle.ErrExists} {
		_, ok := lifecycle.Current(m, err)
		require.False(t, ok, "%v", err)
	}
	leases := lifecycle.Must(lease, lifecycle.NewMemoryStore(), nil)
	add(t, leases, "l", user, size{})
	_, err := leases.Add(t.Context(), "l", initial(leases), user, size{}, nil)
	_, ok := lifecycle.Current(leases, err)
	require.True(t, ok)
	_, ok = lifecycle.Current(m, err)
	require.False(t, ok)
	_, ok = lifecycle.Current(m, &lifecycle.ConflictError{Current: lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "lease", ID: "l"}, State: "Ready", Origin: "Ready", // states of m
	}})
	require.False(t, ok)
}

// TestCurrentOfWork: work has failed with the conflict of another object, which is not the
// record of its own object.
func TestCurrentOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		stopped(t, m, "b")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			_, err := m.Fire(ctx, "b", "start", user, &lifecycle.Change[size]{Expect: "old"})
			return err
		}), nil)
		rec, err := ticket.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrConflict)
		_, ok := lifecycle.Current(m, err)
		require.False(t, ok)
		require.Equal(t, "a", rec.ID)
	})
}

// TestReportOvertaken: a report is about an operation. The manager decides it again,
// however often another writer moves the object within the operation.
func TestReportOvertaken(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "a")
	store.reset()
	store.afterGet = func(n int) {
		if n <= 3 {
			fire(t, store.others(), "a", "progress", agent, nil)
		}
	}
	require.Equal(t, lifecycle.Applied, report(t, m, "a", 2, "done", agent, ""))
	require.Equal(t, 4, store.commits)
	rec := get(t, m, "a")
	require.Equal(t, state("Ready"), rec.State)
	require.EqualValues(t, 3+3+1, rec.Sequence)
}

// TestReportDecidedAgain: the second decision about a report may differ from the
// first.
func TestReportDecidedAgain(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(m *sizedManager) error
		want      lifecycle.Verdict
		state     string
	}{
		{"by itself", func(m *sizedManager) error {
			_, err := m.Report(t.Context(), "a", 2, "done", agent, nil)
			return err
		}, lifecycle.Repeated, "Ready"},
		{"by its contrary", func(m *sizedManager) error {
			_, err := m.Report(t.Context(), "a", 2, "fail", agent, nil)
			return err
		}, lifecycle.Refused, "Failed"},
		{"by another operation", func(m *sizedManager) error {
			_, err := m.Fire(t.Context(), "a", "delete", user, nil)
			return err
		}, lifecycle.Stale, "Deleting"},
		{"by removal", func(m *sizedManager) error {
			_, err := m.Fire(t.Context(), "a", "delete", user, nil)
			_, again := m.Fire(t.Context(), "a", "done", agent, nil)
			return errors.Join(err, again)
		}, lifecycle.Stale, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, store := vms(t)
			updating(t, m, "a")
			store.reset()
			store.afterGet = func(n int) {
				if n == 1 {
					require.NoError(t, c.meanwhile(store.others()))
				}
			}
			require.Equal(t, c.want, report(t, m, "a", 2, "done", agent, ""))
			require.Equal(t, c.state, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "a"}).State)
		})
	}
}

// TestReportRunsGuardsAgain: a report that is overtaken and then refused by a guard is
// refused, even if the guard's reason is a conflict from elsewhere.
func TestReportRunsGuardsAgain(t *testing.T) {
	runs := 0
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	machine := asking(func(context.Context, *size, *size) error {
		if runs++; runs > 1 {
			return &lifecycle.ConflictError{}
		}
		return nil
	})
	m, others := lifecycle.Must(machine, store, nil), lifecycle.Must(machine, store.MemoryStore, nil)
	add(t, m, "a", user, size{})
	fire(t, m, "a", "open", user, nil)
	store.afterGet = func(int) {
		fire(t, others, "a", "edit by force", user, nil)
	}
	require.Equal(t, lifecycle.Refused, report(t, m, "a", 1, "edit", agent, ""))
	require.Equal(t, 2, runs)
}

// TestReportUnderConstantConflict: a report that meets a conflict in every attempt
// returns the conflict and has no verdict.
func TestReportUnderConstantConflict(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "a")
	store.reset()
	store.afterGet = func(int) {
		fire(t, store.others(), "a", "progress", agent, nil)
	}
	verdict, err := m.Report(t.Context(), "a", 2, "done", agent, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, lifecycle.Refused, verdict)
	require.Equal(t, 16, store.commits)
	require.Equal(t, "progress", winnerOf(t, m, err).Event)
}

// TestCreateOvertaken: another create wins. The error has its record, for Create and
// Add.
func TestCreateOvertaken(t *testing.T) {
	t.Run("create", func(t *testing.T) {
		m, store := vms(t)
		store.afterGet = func(int) {
			create(t, store.others(), "a", "import", user, size{N: 7})
		}
		_, err := m.Create(t.Context(), "a", "create", user, size{N: 1}, nil)
		require.ErrorIs(t, err, lifecycle.ErrExists)
		require.ErrorIs(t, err, lifecycle.ErrConflict)
		require.EqualError(t, err, `lifecycle: create vm "a": create by user: exists already, Ready at revision "1"`)
		require.Equal(t, size{N: 7}, winnerOf(t, m, err).Payload)
		require.Equal(t, 1, store.commits)
	})
	t.Run("add", func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m, others := lifecycle.Must(lease, store, nil), lifecycle.Must(lease, store.MemoryStore, nil)
		store.afterGet = func(int) {
			add(t, others, "a", agent, size{N: 7})
		}
		_, err := m.Add(t.Context(), "a", initial(m), user, size{N: 1}, nil)
		require.ErrorIs(t, err, lifecycle.ErrExists)
		require.Equal(t, agent, winnerOf(t, m, err).Actor)
	})
}

// churn makes an object with a long past, removes it, and has the store forget
// it: the numbers of every unknown object go on above its own.
func churn(t *testing.T, store *hooked, id string, touches int) {
	t.Helper()
	others := store.others()
	create(t, others, id, "import", user, size{})
	for range touches {
		fire(t, others, id, "touch", user, nil)
	}
	fire(t, others, id, "delete", user, nil)
	fire(t, others, id, "done", agent, nil)
}

// TestCreateAfterForgotten: the store forgets another removal before the create is
// committed, so the numbers of the absent object move on. The object does not exist,
// and the create is decided again.
func TestCreateAfterForgotten(t *testing.T) {
	m, store := vms(t)
	store.KeepRemoved(-1)
	store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
		if n <= 3 {
			churn(t, store, "other-"+strconv.Itoa(n), 10*n)
		}
		return write()
	}
	rec := create(t, m, "a", "create", user, size{})
	require.Equal(t, 4, store.gets)
	require.Equal(t, 4, store.commits)
	require.EqualValues(t, 13+23+33+1, rec.Sequence, "above all that was forgotten")
	require.EqualValues(t, 13+23+33+1, rec.Operation)
}

// TestCreateUnderConstantConflict: a create that meets a conflict in every attempt
// returns it.
func TestCreateUnderConstantConflict(t *testing.T) {
	m, store := vms(t)
	store.KeepRemoved(-1)
	store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
		if c.Changes[0].To.ID == "a" {
			churn(t, store, "other-"+strconv.Itoa(n), 5*n)
		}
		return write()
	}
	_, err := m.Create(t.Context(), "a", "create", user, size{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.NotErrorIs(t, err, lifecycle.ErrExists)
	require.Equal(t, 16, store.commits)
	_, ok := lifecycle.Current(m, err)
	require.False(t, ok)
	absent(t, store.others(), "a")
}
