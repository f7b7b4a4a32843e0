package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/lifecycle"
)

// failingStore is a store that refuses commits after some of them, as a process that dies.
type failingStore struct {
	*lifecycle.MemoryStore
	commits int // that still succeed; negative: all
}

func (s *failingStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.commits == 0 {
		return lifecycle.ErrUnavailable
	}
	s.commits--
	return s.MemoryStore.Commit(ctx, c)
}

// diskFleet is the disks of several binaries over one store. The twin is the same fleet of
// one binary that has the new version only.
type diskFleet struct {
	script []int  // random numbers; zeros follow
	wrong  string // what a check has found
	store  *failingStore
	old    *oldDisks // nil: no old binary runs any more
	new    []*newDisks
	twin   *newDisks
}

// draw returns a random number from 0 to n-1.
func (f *diskFleet) draw(n int) int {
	if len(f.script) == 0 {
		return 0
	}
	x := f.script[0]
	f.script = f.script[1:]
	return x % n
}

// Errorf and FailNow end the script, so that rapid finds a shorter one.
func (f *diskFleet) Errorf(format string, args ...any) { f.wrong = fmt.Sprintf(format, args...) }
func (f *diskFleet) FailNow()                          { panic(f) }

func (f *diskFleet) one() *newDisks { return f.new[f.draw(len(f.new))] }

// act makes one random request of one of the binaries, and the same request of the twin.
func (f *diskFleet) act(ctx context.Context) {
	id := fmt.Sprint("d", f.draw(5))
	kb := 1 + f.draw(9)
	events := []string{"create", "create", "grow", "attach", "attach", "done", "fail", "detach", "undo", "delete", "pause", "resume", "sweep"}
	event, actor := events[f.draw(len(events))], fsm.Actor("user")
	if event == "done" || event == "fail" {
		actor = "host"
	}
	old := f.old != nil && event != "pause" && event != "resume" && f.draw(2) == 1
	var err, want error
	edits := event == "grow" || event == "attach"
	switch {
	case event == "sweep":
		time.Sleep(time.Hour) // past every deadline: a migration counts it anew, and the twin does not
		if old {
			_, err = f.old.Sweep(ctx)
		} else {
			_, err = f.one().Sweep(ctx)
		}
		_, want = f.twin.Sweep(ctx)
	case event == "create":
		if old {
			_, err = f.old.Create(ctx, id, event, "user", diskSize{KB: kb}, nil)
		} else {
			_, err = f.one().Create(ctx, id, event, "user", diskBytes{Bytes: kb << 10}, nil)
		}
		_, want = f.twin.Create(ctx, id, event, "user", diskBytes{Bytes: kb << 10}, nil)
	default:
		var change *lifecycle.Change[diskBytes]
		if edits {
			change = growTo(kb << 10)
		}
		if old {
			var change *lifecycle.Change[diskSize]
			if edits {
				change = &lifecycle.Change[diskSize]{Edit: func(d *diskSize) error { d.KB = kb; return nil }}
			}
			_, err = f.old.Fire(ctx, id, event, actor, change)
		} else {
			_, err = f.one().Fire(ctx, id, event, actor, change)
		}
		if event == "pause" && err != nil {
			return // the record may be of the old version, which has no such state
		}
		_, want = f.twin.Fire(ctx, id, event, actor, change)
	}
	require.Equal(f, want == nil, err == nil, "%s %s: %v, twin: %v", event, id, err, want)
}

// same compares what every binary reads with the twin.
func (f *diskFleet) same(ctx context.Context) {
	want, err := f.twin.List(ctx, lifecycle.Select[string]{})
	require.NoError(f, err)
	for _, m := range f.new {
		got, err := m.List(ctx, lifecycle.Select[string]{})
		require.NoError(f, err)
		require.Len(f, got, len(want))
		for i := range want {
			require.NoError(f, got[i].Err)
			require.Equal(f, want[i].Status, got[i].Status)
			require.Equal(f, want[i].Payload, got[i].Payload)
			require.Equal(f, want[i].Target, got[i].Target)
			require.Equal(f, want[i].Operation, got[i].Operation)
		}
	}
	if f.old == nil {
		return
	}
	read, err := f.old.List(ctx, lifecycle.Select[string]{})
	require.NoError(f, err)
	for i := range want {
		require.NoError(f, read[i].Err, "an old binary reads what new ones write before the switch")
		require.Equal(f, want[i].State, firstDisk().States[read[i].State])
		require.Equal(f, want[i].Payload.Bytes, read[i].Payload.KB<<10)
	}
}

// TestFleetOfTwoVersions: a fleet goes from version 1 to 2 under random requests and
// sweeps: old and new binaries side by side; then new ones only, before and after their
// switch; then a migration that dies several times. No request has another result than in
// a fleet of the new version alone, apart from the new state, and the history is one of
// the two tables.
func TestFleetOfTwoVersions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &diskFleet{script: rapid.SliceOfN(rapid.IntRange(0, 1<<20), 300, 600).Draw(rt, "script")}
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if x := recover(); x != nil && x != f {
					panic(x)
				}
			}()
			f.play(t.Context())
		})
		if f.wrong != "" {
			rt.Fatal(f.wrong)
		}
	})
}

func (f *diskFleet) play(ctx context.Context) {
	f.store = &failingStore{lifecycle.NewMemoryStore(), -1}
	f.store.KeepHistory = -1
	f.twin = lifecycle.Must(disk2, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{Undo: []string{"undo"}})
	phase := func(binaries ...*newDisks) {
		f.new = binaries
		for range f.draw(15) {
			f.act(ctx)
			f.same(ctx)
		}
	}
	f.old = oldDisk(f.store)
	phase(newDisk(f.store, false))
	f.old = nil
	phase(newDisk(f.store, false), newDisk(f.store, true))

	for after, done := "", false; !done; {
		m := newDisk(f.store, true)
		if f.draw(2) == 1 { // the process dies
			f.store.commits = f.draw(4)
		}
		page, err := lifecycle.Migrate(ctx, m, "operator", after, 1+f.draw(3))
		f.store.commits = -1
		require.Empty(f, page.Failed)
		if err != nil {
			require.ErrorIs(f, err, lifecycle.ErrUnavailable)
		}
		after, done = page.Next, err == nil && page.Next == ""
		if f.draw(3) == 1 && !done { // the position is lost too
			after = ""
		}
		phase(newDisk(f.store, false), m)
	}
	// A binary before its switch may have created objects behind the last page.
	m := newDisk(f.store, true)
	_, err := lifecycle.Migrate(ctx, m, "operator", "", 0)
	require.NoError(f, err)
	page, err := lifecycle.Migrate(ctx, m, "operator", "", 0)
	require.NoError(f, err)
	require.Zero(f, page.Migrated)
	phase(m, newDisk(f.store, true))
	alone := lifecycle.Must(disk2, f.store, &lifecycle.Config[string]{Version: "2"})
	list, err := alone.List(ctx, lifecycle.Select[string]{})
	require.NoError(f, err)
	for _, r := range list {
		require.NoError(f, r.Err, "the older version is needed no more")
	}
	f.conforms(ctx)
}

// conforms checks the history by the tables of both versions.
func (f *diskFleet) conforms(ctx context.Context) {
	rows := func(yield func(history.Row, error) bool) {
		for i := range 5 {
			list, err := f.store.History(ctx, lifecycle.Key{Machine: "disk", ID: fmt.Sprint("d", i)}, 0, 1000)
			require.NoError(f, err)
			for _, r := range list {
				row := history.Row{
					Machine: r.Machine, ID: r.ID, Version: cmp.Or(r.Version, "1"), Sequence: r.Sequence, Operation: uint64(r.Operation),
					From: r.From, FromOrigin: r.FromOrigin, To: r.To, Origin: r.Origin, Event: r.Event, Actor: r.Actor, At: r.At,
				}
				if r.From == "" { // an object is created from the absent state
					row.FromOrigin = ""
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	sum, err := history.Check(rows, []history.TableVersion{{Name: "1", Table: disk1.Table()}, {Name: "2", Table: disk2.Table()}}, nil)
	if !errors.Is(err, history.ErrEmpty) {
		require.NoError(f, err)
		require.Empty(f, sum.Findings)
	}
}
