package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Two versions of a disk. The second one renames two states, adds one, and counts bytes.

type (
	diskSize    struct{ KB int }
	diskBytes   struct{ Bytes int }
	oldDisks    = lifecycle.Manager[string, string, diskSize]
	newDisks    = lifecycle.Manager[string, string, diskBytes]
	diskVersion struct{ ready, attaching, used string }
)

func disk[T any](v diskVersion, more ...fsm.State[string]) *fsm.Machine[string, string, T] {
	spec := fsm.Spec[string, string]{
		Name: "disk", Initial: "None", Actors: []fsm.Actor{"user", "host"},
		States: append([]fsm.State[string]{
			{Name: "None", Kind: fsm.Absent},
			{Name: v.ready},
			{Name: v.attaching, Kind: fsm.Transitional, Target: &v.used},
			{Name: v.used},
			{Name: "Broken", Kind: fsm.Failed},
		}, more...),
		Rows: fsm.Rows(
			fsm.Move("None", "create", v.ready).By("user"),
			fsm.Move(v.ready, "grow", v.ready).By("user"),
			fsm.Move(v.ready, "attach", v.attaching).By("user"),
			fsm.Move(v.attaching, "done", v.used).By("host"),
			fsm.Move(v.attaching, "fail", "Broken").By("host"),
			fsm.Return(v.attaching, "late").After(time.Minute),
			fsm.Move(v.used, "detach", v.ready).By("user"),
			fsm.Move("Broken", "undo", v.ready).By("user"),
			fsm.Move(v.ready, "delete", "None").By("user"),
		),
	}
	for _, s := range more {
		spec.Rows = append(spec.Rows, fsm.Move(v.ready, "pause", s.Name).By("user"), fsm.Move(s.Name, "resume", v.ready).By("user"))
	}
	return fsm.Must[T](spec)
}

var (
	disk1 = disk[diskSize](diskVersion{"Ready", "Attaching", "Used"})
	disk2 = disk[diskBytes](diskVersion{"Available", "Connecting", "Attached"}, fsm.State[string]{Name: "Paused"})
)

// convertDisk returns a conversion of payloads.
func convertDisk[From, To any](f func(From) To) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		var from From
		if err := json.Unmarshal(data, &from); err != nil {
			return nil, err
		}
		return json.Marshal(f(from))
	}
}

func firstDisk() lifecycle.Version {
	return lifecycle.Version{
		States: map[string]string{
			"None": "None", "Ready": "Available", "Attaching": "Connecting", "Used": "Attached", "Broken": "Broken",
		},
		Upgrade:   convertDisk(func(s diskSize) diskBytes { return diskBytes{s.KB << 10} }),
		Downgrade: convertDisk(func(s diskBytes) diskSize { return diskSize{s.Bytes >> 10} }),
	}
}

func oldDisk(store lifecycle.Store) *oldDisks {
	return lifecycle.Must(disk1, store, &lifecycle.Config[string]{Undo: []string{"undo"}})
}

func newDisk(store lifecycle.Store, switched bool) *newDisks {
	return lifecycle.Must(disk2, store, &lifecycle.Config[string]{
		Undo: []string{"undo"}, Version: "2", Older: []lifecycle.Version{firstDisk()}, Switch: switched,
		WorkerActor: "host", Done: []string{"done"}, Failed: []string{"fail"},
	})
}

func diskAt(t *testing.T, store lifecycle.Store, id string) lifecycle.StoredRecord {
	return storedAt(t, store, lifecycle.Key{Machine: "disk", ID: id})
}

func growTo(bytes int) *lifecycle.Change[diskBytes] {
	return &lifecycle.Change[diskBytes]{Edit: func(d *diskBytes) error { d.Bytes = bytes; return nil }}
}

// TestOriginOfAStateAtRest: another program has written the state alone. The origin that the
// record has from before counts for no version.
func TestOriginOfAStateAtRest(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	old, new := oldDisk(store), newDisk(store, false)
	key := lifecycle.Key{Machine: "disk", ID: "a"}
	plant(t, store, lifecycle.StoredRecord{Key: key, State: "Ready", Origin: "Used"})
	require.Equal(t, fsm.Status[string]{State: "Ready", Origin: "Ready"}, get(t, old, "a").Status)
	require.Equal(t, fsm.Status[string]{State: "Available", Origin: "Available"}, get(t, new, "a").Status)
	rec := fire(t, new, "a", "attach", "user", nil)
	require.Equal(t, fsm.Status[string]{State: "Connecting", Origin: "Available"}, rec.Status)
	rows := rowsOf(t, new, "a", 0, 9)
	require.Equal(t, []string{"Ready", "Ready", "Attaching", "Ready"},
		[]string{rows[1].From, rows[1].FromOrigin, rows[1].To, rows[1].Origin})
}

// TestOlderVersion: before the switch, a new binary reads what an old one writes, and
// writes what the old one reads.
func TestOlderVersion(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	old, new := oldDisk(store), newDisk(store, false)
	create(t, old, "a", "create", "user", diskSize{KB: 3})
	seen := get(t, new, "a")
	require.Equal(t, "Available", seen.State)
	require.Equal(t, 3<<10, seen.Payload.Bytes)

	rec := fire(t, new, "a", "attach", "user", growTo(4<<10))
	require.Equal(t, fsm.Status[string]{State: "Connecting", Origin: "Available"}, rec.Status)
	require.Equal(t, "Attached", rec.Target)
	require.Equal(t, 4<<10, rec.Payload.Bytes)
	r := diskAt(t, store, "a")
	require.Equal(t, []string{"Attaching", "Ready", "Used", ""}, []string{r.State, r.Origin, r.Target, r.Version})
	require.Empty(t, rec.Version, "the version that the store has")
	require.Empty(t, get(t, new, "a").Version)
	require.JSONEq(t, `{"KB": 3}`, string(r.Saved))
	require.Equal(t, rec.Revision, r.Revision)
	require.Equal(t, rec.ETag, get(t, old, "a").ETag)
	require.Equal(t, rec.Deadline, r.Deadline)
	require.Equal(t, diskSize{KB: 4}, get(t, old, "a").Payload)

	require.Equal(t, lifecycle.Applied, report(t, old, "a", rec.Operation, "fail", "host", ""))
	require.Equal(t, lifecycle.Repeated, report(t, new, "a", rec.Operation, "fail", "host", ""))
	require.Equal(t, 3<<10, fire(t, new, "a", "undo", "user", nil).Payload.Bytes)

	require.Empty(t, create(t, new, "b", "create", "user", diskBytes{Bytes: 5 << 10}).Version)
	require.Equal(t, diskSize{KB: 5}, get(t, old, "b").Payload)
	_, err := new.Fire(t.Context(), "b", "pause", "user", nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	require.ErrorContains(t, err, `version "" of the record has no state "Paused" until it is migrated`)
	_, err = new.Override(t.Context(), "b", "Paused", "root", "a try", nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	for _, x := range explain(t, new, "b").Actors[0].Events {
		if x.Event == "pause" {
			require.False(t, x.Possible)
			require.Equal(t, `not allowed: version "" of the record has no state "Paused" until it is migrated`, x.Why)
		}
	}

	page, err := new.List(t.Context(), lifecycle.Select[string]{States: []string{"Available"}})
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.Equal(t, []string{"Available", "Ready"}, new.Require("a", "Available").States)
	fire(t, old, "a", "grow", "user", &lifecycle.Change[diskSize]{Require: []lifecycle.Precondition{new.Require("b", "Available")}})
	_, err = new.Fire(t.Context(), "b", "grow", "user", &lifecycle.Change[diskBytes]{Expect: "other"})
	require.Equal(t, "Available", winnerOf(t, new, err).State)
	require.Equal(t, "Available", explain(t, new, "a").State)

	_, err = new.Fire(t.Context(), "b", "attach", "user", &lifecycle.Change[diskBytes]{Edit: func(*diskBytes) error { return errBoom }})
	require.ErrorIs(t, err, errBoom)
	ticket := do(t, new, "b", "attach", "user", lifecycle.Func(fine), nil)
	require.Equal(t, "Connecting", ticket.Admitted().State)
	require.Empty(t, ticket.Admitted().Version)
	attached := wait(t, ticket)
	require.Equal(t, get(t, new, "b"), attached)

	fire(t, new, "a", "delete", "user", nil)
	absent(t, old, "a")
	_, err = lifecycle.Migrate(t.Context(), new, "operator", "", 0)
	require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
}

// TestOlderVersionInABareStore: the store keeps no tokens. The record that a call returns is the
// one that the store has.
func TestOlderVersionInABareStore(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	store.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
		c.Changes[0].To.Admission, c.Changes[0].To.ChangeToken = lifecycle.Token{}, lifecycle.Token{}
		return write()
	}
	m := newDisk(store, false)
	require.Equal(t, create(t, m, "a", "create", "user", diskBytes{}), get(t, m, "a"))
}

// TestUnknownVersion: a version that a binary does not have is refused, whatever the names
// of its states are.
func TestUnknownVersion(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := newDisk(store, true)
	create(t, m, "a", "create", "user", diskBytes{Bytes: 1})
	fire(t, m, "a", "attach", "user", nil)
	before := diskAt(t, store, "a")
	require.Equal(t, "2", before.Version)
	old := oldDisk(store)
	_, err := old.Get(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.ErrorContains(t, err, `the record is of version "2", which this manager of version "" does not have`)
	_, err = old.Fire(t.Context(), "a", "done", "host", nil)
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	unknown, _ := errors.AsType[*lifecycle.VersionError](err)
	require.Equal(t, &lifecycle.VersionError{Record: "2"}, unknown)
	require.Equal(t, 503, lifecycle.HTTPStatus(err), "a newer replica has the version")
	_, err = old.Override(t.Context(), "a", "None", "root", "a try", nil)
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	page, err := old.List(t.Context(), lifecycle.Select[string]{})
	require.NoError(t, err)
	require.ErrorIs(t, page[0].Err, lifecycle.ErrForeign)
	require.Equal(t, before, diskAt(t, store, "a"))

	// A record in a state that its version does not list, and one that Upgrade refuses.
	for _, bad := range []lifecycle.StoredRecord{
		{State: "Lost", Origin: "Lost", Payload: []byte(`{"KB":1}`)},
		{State: "Ready", Origin: "Ready", Payload: []byte(`7`)},
	} {
		bad.Key = lifecycle.Key{Machine: "disk", ID: "bad"}
		store := lifecycle.NewMemoryStore()
		plant(t, store, bad)
		m := newDisk(store, true)
		_, err = m.Get(t.Context(), "bad")
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		result, err := lifecycle.Migrate(t.Context(), m, "operator", "", 0)
		require.NoError(t, err)
		require.Len(t, result.Failed, 1)
		require.ErrorIs(t, result.Failed[0], lifecycle.ErrForeign)
		require.Equal(t, 500, lifecycle.HTTPStatus(result.Failed[0]))
		require.Equal(t, bad.State, storedAt(t, store, bad.Key).State)
	}
}

// TestOverrideRemovesWhatUpgradeRefuses: an operator can remove a record whose payload
// cannot be upgraded. No other override reads it.
func TestOverrideRemovesWhatUpgradeRefuses(t *testing.T) {
	for _, switched := range []bool{false, true} {
		store := lifecycle.NewMemoryStore()
		plant(t, store, lifecycle.StoredRecord{
			Key: lifecycle.Key{Machine: "disk", ID: "a"}, State: "Attaching", Origin: "Ready", Payload: []byte(`7`), Saved: []byte(`8`),
		})
		m := newDisk(store, switched)
		_, err := m.Override(t.Context(), "a", "Available", "root", "repair", nil)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		_, err = m.Override(t.Context(), "a", "None", "root", "repair", growTo(1))
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		override(t, m, "a", "None", "root", "it cannot be read", nil)
		require.Empty(t, diskAt(t, store, "a").State)
		rows := rowsOf(t, m, "a", 0, 0)
		require.Equal(t, []string{"Attaching", "None", ""}, []string{rows[len(rows)-1].From, rows[len(rows)-1].To, rows[len(rows)-1].Version})
	}
}

// TestMigrate: a migration keeps the object and its operation as they are.
func TestMigrate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		old := oldDisk(store)
		for _, id := range []string{"a", "b", "c"} {
			create(t, old, id, "create", "user", diskSize{KB: 3})
		}
		edit := &lifecycle.Change[diskSize]{Edit: func(d *diskSize) error { d.KB = 4; return nil }}
		fire(t, old, "b", "attach", "user", edit)
		time.Sleep(50 * time.Second)
		m := newDisk(store, true)
		before := get(t, m, "b")
		first, err := lifecycle.Migrate(t.Context(), m, "operator", "", 2)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Migration{Migrated: 2, Next: "b"}, first)
		last, err := lifecycle.Migrate(t.Context(), m, "operator", first.Next, 2)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Migration{Migrated: 1}, last)
		again, err := lifecycle.Migrate(t.Context(), m, "operator", "", 0)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Migration{Current: 3}, again)

		after := get(t, m, "b")
		require.Equal(t, before.Status, after.Status)
		require.Equal(t, before.Payload, after.Payload)
		require.Equal(t, before.Target, after.Target)
		require.Equal(t, before.Operation, after.Operation)
		require.Equal(t, before.Admission, after.Admission)
		require.Equal(t, time.Minute, after.Deadline.Sub(after.ChangedAt))
		r := diskAt(t, store, "b")
		require.Equal(t, []string{"Connecting", "Available", "Attached", "2"}, []string{r.State, r.Origin, r.Target, r.Version})
		require.JSONEq(t, `{"Bytes": 3072}`, string(r.Saved))
		rows := rowsOf(t, m, "a", 1, 0)
		require.Len(t, rows, 1)
		require.Equal(t, `disk "a" #2 operation 0: Ready -(migrate)-> Available by operator: from version "" to "2"`, rows[0].String())

		require.Equal(t, lifecycle.Applied, report(t, m, "b", before.Operation, "done", "host", ""))
		require.Equal(t, "Paused", fire(t, m, "a", "pause", "user", nil).State)
		create(t, m, "d", "create", "user", diskBytes{Bytes: 7})
		require.Equal(t, "2", diskAt(t, store, "d").Version)

		// A binary before its switch leaves records of the new version in that version.
		fire(t, newDisk(store, false), "d", "grow", "user", growTo(8))
		require.Equal(t, "2", diskAt(t, store, "d").Version)
		require.Equal(t, 8, get(t, m, "d").Payload.Bytes)
	})
}

// TestMigrateTwice: of two migrations of one record at the same time one is committed, and
// a record that was removed meanwhile is not counted.
func TestMigrateTwice(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	for _, id := range []string{"a", "b"} {
		create(t, oldDisk(store), id, "create", "user", diskSize{KB: 3})
	}
	other := newDisk(store.MemoryStore, true)
	store.reset()
	store.afterGet = func(n int) {
		if n == 1 { // Migrate has read a
			page, err := lifecycle.Migrate(t.Context(), other, "another operator", "", 1)
			require.NoError(t, err)
			require.Equal(t, lifecycle.Migration{Migrated: 1, Next: "a"}, page)
			override(t, other, "b", "None", "operator", "it is gone", nil)
		}
	}
	page, err := lifecycle.Migrate(t.Context(), newDisk(store, true), "operator", "", 0)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Migration{Current: 1}, page)
	rows := rowsOf(t, other, "a", 1, 0)
	require.Len(t, rows, 1)
	require.EqualValues(t, "another operator", rows[0].Actor)
}

// TestMigrateRunningWork: the work of an operation goes on while its record is migrated.
func TestMigrateRunningWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		worker, other := newDisk(store, false), newDisk(store, true)
		create(t, worker, "a", "create", "user", diskBytes{Bytes: 1 << 10})
		finish := make(chan struct{})
		ticket := do(t, worker, "a", "attach", "user", lifecycle.Func(func(ctx context.Context) error {
			select {
			case <-finish:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}), nil)
		synctest.Wait()
		r := diskAt(t, store, "a")
		require.Equal(t, "Ready", r.Origin)
		time.Sleep(time.Second)
		require.NoError(t, worker.Heartbeat(t.Context(), "a"))
		extended := diskAt(t, store, "a")
		require.Equal(t, time.Second, extended.Deadline.Sub(r.Deadline))
		extended.Revision, extended.Deadline = r.Revision, r.Deadline
		require.Equal(t, r, extended, "a heartbeat before the switch")

		page, err := lifecycle.Migrate(t.Context(), other, "operator", "", 0)
		require.NoError(t, err)
		require.Equal(t, 1, page.Migrated)
		require.Empty(t, sweep(t, worker))
		close(finish)
		require.Equal(t, "Attached", wait(t, ticket).State)
		require.Equal(t, "Attached", diskAt(t, store, "a").State)
		require.NoError(t, lifecycle.Drain(t.Context(), worker))
	})
}

// TestOlderVersionTakesAnOperation: the record of a lost operation has the version in which
// the store has it, however this process learns of the loss.
func TestOlderVersionTakesAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		worker := newDisk(store, false)
		for id, take := range map[string]func(ticket *lifecycle.Ticket[string, diskBytes]){
			"by the same manager": func(ticket *lifecycle.Ticket[string, diskBytes]) {
				override(t, worker, ticket.Admitted().ID, "Broken", "root", "a test", nil)
			},
			"found by a sweep": func(ticket *lifecycle.Ticket[string, diskBytes]) {
				report(t, oldDisk(store), ticket.Admitted().ID, ticket.Operation(), "fail", "host", "")
				sweep(t, worker)
			},
			"found by the outcome": func(ticket *lifecycle.Ticket[string, diskBytes]) {
				report(t, oldDisk(store), ticket.Admitted().ID, ticket.Operation(), "fail", "host", "")
				ticket.Cancel(errors.New("a test"))
			},
		} {
			create(t, worker, id, "create", "user", diskBytes{Bytes: 1 << 10})
			ticket := do(t, worker, id, "attach", "user", lifecycle.Func(untilEnded), nil)
			synctest.Wait()
			take(ticket)
			rec, err := ticket.Wait(t.Context())
			require.ErrorIs(t, err, lifecycle.ErrStale, id)
			require.Equal(t, get(t, worker, id), rec, id)
		}
	})
}

// TestOlderVersionIsNotSeen: what a new binary runs for a record of the older version sees
// the present names. Observers see the history as the store has it.
func TestOlderVersionIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		create(t, oldDisk(store), "a", "create", "user", diskSize{KB: 3})
		var rows []lifecycle.HistoryRow
		m := lifecycle.Must(disk2, store, &lifecycle.Config[string]{
			Version: "2", Older: []lifecycle.Version{firstDisk()}, WorkerActor: "host", Done: []string{"done"},
			Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) { rows = append(rows, row.HistoryRow) }},
			BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				require.Contains(t, []string{"Available", "Connecting"}, ch.From)
				require.Equal(t, []string{"Available", "2"}, []string{ch.FromOrigin, ch.To.Version})
				return nil, nil
			},
			Observe: func(_ context.Context, stuck lifecycle.StoredRecord) (string, fsm.Actor, error) {
				require.Equal(t, []string{"Connecting", "2"}, []string{stuck.State, stuck.Version})
				require.JSONEq(t, `{"Bytes": 3072}`, string(stuck.Payload))
				return "late", fsm.Sweeper, nil
			},
		})
		ran := false
		ticket := occupy(t, m, "a", "copy", lifecycle.Func(func(context.Context) error { ran = true; return nil }), "Available")
		require.NoError(t, ticket.Wait(t.Context()))
		require.True(t, ran)

		fire(t, m, "a", "attach", "user", nil)
		time.Sleep(time.Hour)
		found := sweep(t, m)
		require.Len(t, found, 1)
		require.Equal(t, []string{"Connecting", "Available"}, []string{found[0].From, found[0].To})
		require.Equal(t, rowsOf(t, m, "a", 1, 0), rows)
		require.Equal(t, []string{"Attaching", "Ready"}, []string{rows[0].To, rows[1].To})
		require.NoError(t, lifecycle.Drain(t.Context(), m))
	})
}

// TestOldNameAtRest: a process of the older version ends an operation of a new binary, in a
// state that has another name there. Work that waits does not begin, and a sweep ends work
// that runs.
func TestOldNameAtRest(t *testing.T) {
	for name, begun := range map[string]bool{"waiting": false, "running": true} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := newDisk(store, false)
			create(t, m, "a", "create", "user", diskBytes{})
			if !begun {
				occupy(t, m, "a", "wait", sleeping(10*time.Second))
			}
			ran, ended := false, false
			ticket := do(t, m, "a", "attach", "user", lifecycle.Func(func(ctx context.Context) error {
				ran = true
				select {
				case <-ctx.Done():
					ended = true
				case <-time.After(time.Hour):
				}
				return ctx.Err()
			}), nil)
			synctest.Wait()
			require.Equal(t, lifecycle.Applied, report(t, oldDisk(store), "a", ticket.Operation(), "done", "host", ""))
			require.Equal(t, "Used", diskAt(t, store, "a").State)
			if begun {
				require.Empty(t, sweep(t, m))
			}
			require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
			require.Equal(t, []bool{begun, begun}, []bool{ran, ended})
		})
	}
}

// TestMigrateRefuses: what Migrate cannot do changes nothing.
func TestMigrateRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	create(t, oldDisk(store), "a", "create", "user", diskSize{KB: 3})
	before := diskAt(t, store, "a")
	m := newDisk(store, true)
	for _, c := range []struct {
		name  string
		actor fsm.Actor
		after string
		limit int
		is    error
	}{
		{"blank actor", " ", "", 0, lifecycle.ErrInvalid},
		{"actor that is no text", "\x00", "", 0, lifecycle.ErrInvalid},
		{"sweeper", fsm.Sweeper, "", 0, fsm.ErrWrongActor},
		{"start that is no id", "operator", "\x00", 0, lifecycle.ErrInvalid},
		{"too large a page", "operator", "", lifecycle.MaxPage + 1, lifecycle.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := lifecycle.Migrate(t.Context(), m, c.actor, c.after, c.limit)
			require.ErrorIs(t, err, c.is)
			require.Equal(t, lifecycle.Migration{Next: c.after}, page)
		})
	}
	// The error of BeforeCommit may be about another object that does not exist.
	for _, refusal := range []error{errors.New("not now"), lifecycle.ErrNotFound} {
		refusing := lifecycle.Must(disk2, store, &lifecycle.Config[string]{
			Version: "2", Older: []lifecycle.Version{firstDisk()}, Switch: true,
			BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				require.Equal(t, []string{"Available", "Available", "2"}, []string{ch.From, ch.To.State, ch.To.Version})
				return nil, refusal
			},
		})
		page, err := lifecycle.Migrate(t.Context(), refusing, "operator", "", 0)
		require.NoError(t, err)
		require.Len(t, page.Failed, 1)
		require.ErrorIs(t, page.Failed[0], refusal)
		require.ErrorContains(t, page.Failed[0], `lifecycle: migrate disk "a": (migrate) by operator in Available: `)
		require.Equal(t, before, diskAt(t, store, "a"))
	}
}

// TestBadVersions: New refuses versions that cannot be read and written without a guess.
func TestBadVersions(t *testing.T) {
	for want, change := range map[string]func(*lifecycle.Config[string]){
		`version "2": there are two of this name`:                          func(c *lifecycle.Config[string]) { c.Older[0].Name = "2" },
		`version "": there are two of this name`:                           func(c *lifecycle.Config[string]) { c.Older = append(c.Older, c.Older[0]) },
		`version "": Upgrade and Downgrade need each other`:                func(c *lifecycle.Config[string]) { c.Older[0].Downgrade = nil },
		`version "": state "Old": machine disk has no state "New"`:         func(c *lifecycle.Config[string]) { c.Older[0].States["Old"] = "New" },
		`version "": states "Old" and "Ready" are both "Available"`:        func(c *lifecycle.Config[string]) { c.Older[0].States["Old"] = "Available" },
		`version "": state "Attached" is "Paused", and machine disk has a`: func(c *lifecycle.Config[string]) { c.Older[0].States["Attached"] = "Paused" },
		`version "1": state "Ready" is "Attached", and in version "" it is "Available"`: func(c *lifecycle.Config[string]) {
			c.Older = append(c.Older, lifecycle.Version{Name: "1", States: map[string]string{"Ready": "Attached"}})
		},
		`Config.Switch: there is no older version`: func(c *lifecycle.Config[string]) { c.Older = nil },
		`NUL in version "2\x00"`:                   func(c *lifecycle.Config[string]) { c.Version = "2\x00" },
		`version "\xff" is not UTF-8`:              func(c *lifecycle.Config[string]) { c.Older[0].Name = "\xff" },
		`version of 256 bytes`:                     func(c *lifecycle.Config[string]) { c.Version = strings.Repeat("v", 256) },
	} {
		t.Run(want, func(t *testing.T) {
			c := &lifecycle.Config[string]{Version: "2", Older: []lifecycle.Version{firstDisk()}, Switch: true}
			change(c)
			_, err := lifecycle.New(disk2, lifecycle.NewMemoryStore(), c)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.ErrorContains(t, err, want)
		})
	}
}
