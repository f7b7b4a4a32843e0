package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// object is what a store would hold: the payload as a number, and the one that
// is kept.
type object struct {
	rec     decide.Record
	payload int
	saved   *int
}

// perform does with the payload what the decision demands. The payload after an edit
// is edited.
func (o *object) perform(q decide.Request, d decide.Decision, edited int) {
	if !d.Write {
		return
	}
	if d.Saves {
		o.saved = new(o.payload)
	} else if q.Restores(&o.rec) {
		o.payload = *o.saved
	}
	if !d.Saved {
		o.saved = nil
	}
	if q.Edits || !o.rec.Exists {
		o.payload = edited
	}
	o.rec = after(o.rec, d)
}

// TestPayload plays random lives against a naive memory of what the object
// contained when it was last well at rest, or when it was made: that is what an
// undo must bring back, whatever happened since.
func TestPayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		var o object
		var good int
		for step := 1; step <= 30; step++ {
			q := drawRequest(t, table, o.rec)
			existed := o.rec.Exists
			d := decision(table, o.rec, q, func(int) error { return nil })
			o.perform(q, d, step)
			if !d.Write {
				continue
			}
			kind := table.States[d.State].Kind
			if o.rec.Saved != (o.saved != nil) {
				t.Fatalf("step %d: %+v keeps a payload, and Saved is false, or the other way round", step, q)
			}
			if q.Undo && existed && !q.Edits && o.payload != good {
				t.Fatalf("step %d: %+v brings %d back, not %d", step, q, o.payload, good)
			}
			if !existed || kind.Resting() && kind != fsm.Failed {
				good = o.payload
			}
			if o.saved != nil && *o.saved != good {
				t.Fatalf("step %d: %+v keeps %d, not %d", step, q, *o.saved, good)
			}
			if o.saved != nil && kind.Resting() && kind != fsm.Failed {
				t.Fatalf("step %d: a payload is kept although all is well in %s", step, table.States[d.State].Name)
			}
		}
	})
}

// TestPayloadRule states the rule case by case. The machine goes from good or
// bad to work and back.
func TestPayloadRule(t *testing.T) {
	table := fsm.Must[int](spec{
		Name: "payload", Initial: "none", Actors: actors,
		States: []fsm.State[string]{
			{Name: "none", Kind: fsm.Absent},
			{Name: "good"},
			{Name: "work", Kind: fsm.Transitional, Manual: "tests"},
			{Name: "more", Kind: fsm.Transitional, Manual: "tests"},
			{Name: "bad", Kind: fsm.Failed},
			{Name: "end", Kind: fsm.Final},
		},
		Rows: fsm.Rows(
			fsm.Move("none", "work", "work").AlsoFrom("good", "bad", "more"),
			fsm.Move("work", "more", "more").AlsoFrom("more"),
			fsm.Move("work", "again", "work").Superseding(),
			fsm.Move("work", "good", "good").AlsoFrom("more", "bad", "none", "good"),
			fsm.Move("work", "bad", "bad").AlsoFrom("more", "bad", "none", "good"),
			fsm.Move("good", "end", "end"),
			fsm.Move("good", "none", "none").AlsoFrom("bad", "work"),
		),
	}).Table()
	const (
		edits = 1 << iota
		undo
		saved
	)
	cases := []struct {
		name     string
		from, by string
		with     int
		saves    bool
		kept     bool // a payload is kept afterwards
	}{
		{"begins with an edit", "good", "work", edits, true, true},
		{"begins without one", "good", "work", 0, false, false},
		{"is made", "none", "work", 0, false, false},
		{"is made good", "none", "good", 0, false, false},
		{"ends well", "work", "good", saved, false, false},
		{"ends well with an edit", "work", "good", edits | saved, false, false},
		{"ends badly", "work", "bad", saved, false, true},
		{"ends badly with an edit", "work", "bad", edits | saved, false, true},
		{"first edit ends it badly", "work", "bad", edits, true, true},
		{"first edit on the way", "work", "more", edits, true, true},
		{"second edit on the way", "more", "more", edits | saved, false, true},
		{"goes on", "work", "more", saved, false, true},
		{"superseded with an edit", "work", "again", edits | saved, false, true},
		{"superseded with the first edit", "work", "again", edits, true, true},
		{"superseded", "work", "again", saved, false, true},
		{"fails at rest with an edit", "good", "bad", edits, true, true},
		{"edited at rest", "good", "good", edits, false, false},
		{"retried with an edit", "bad", "work", edits | saved, false, true},
		{"retried with the first edit", "bad", "work", edits, true, true},
		{"retried", "bad", "work", saved, false, true},
		{"goes on, and nothing was edited", "work", "more", 0, false, false},
		{"superseded, and nothing was edited", "work", "again", 0, false, false},
		{"ends badly, and nothing was edited", "work", "bad", 0, false, false},
		{"retried, and nothing was edited", "bad", "work", 0, false, false},
		{"given up", "bad", "good", saved, false, false},
		{"undone", "bad", "good", undo | saved, false, false},
		{"undone by work", "bad", "work", undo | saved, false, true},
		{"undone where nothing was edited", "bad", "good", undo, false, false},
		{"undone while at work", "work", "good", undo | saved, false, false},
		{"undone and gone", "bad", "none", undo | saved, false, false},
		{"gone", "bad", "none", saved, false, false},
		{"ended for good", "good", "end", edits, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, table, c.from, c.from)
			rec.Saved = c.with&saved != 0
			q := decide.Request{
				Verb: decide.Fire, Event: event(t, table, c.by), Actor: "user",
				Edits: c.with&edits != 0, Undo: c.with&undo != 0,
			}
			if !rec.Exists {
				q.Verb = decide.Create
			}
			d := decision(table, rec, q, nil)
			require.NoError(t, d.Err)
			require.True(t, d.Write)
			require.Equal(t, c.saves, d.Saves)
			require.Equal(t, c.kept, d.Saved)
		})
	}
}

// TestPayloadOfOverride: an override keeps what an undo would bring back, as an
// event would.
func TestPayloadOfOverride(t *testing.T) {
	cases := []struct {
		name, from, to string
		edits, saved   bool
		saves, kept    bool
	}{
		{"to failed", "Making", "Bad", false, true, false, true},
		{"to failed with an edit", "Making", "Bad", true, true, false, true},
		{"to failed with the first edit", "Ready", "Bad", true, false, true, true},
		{"to work with the first edit", "Ready", "Resizing", true, false, true, true},
		{"to work", "Ready", "Resizing", false, false, false, false},
		{"to rest", "Making", "Ready", true, true, false, false},
		{"away", "Bad", "None", false, true, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			origin := c.from
			if c.from == "Making" {
				origin = "None"
			}
			rec := record(t, disks, c.from, origin)
			rec.Saved = c.saved
			d := decision(disks, rec, decide.Request{Verb: decide.Override, To: stateOf(t, disks, c.to), Edits: c.edits}, nil)
			require.True(t, d.Write)
			require.Equal(t, c.saves, d.Saves)
			require.Equal(t, c.kept, d.Saved)
		})
	}
}

func event(t *testing.T, table *fsm.Table, name string) int {
	t.Helper()
	i, ok := table.EventIndex(name)
	require.True(t, ok, "event %s", name)
	return i
}

// record is an object in a state, or the absence of one in an absent state.
func record(t *testing.T, table *fsm.Table, state, origin string) decide.Record {
	t.Helper()
	s, o, err := table.ParseStatus(state, origin)
	require.NoError(t, err)
	rec := decide.Record{Exists: true, State: s, Origin: o, Sequence: 7, Operation: 3}
	if table.States[s].Kind == fsm.Absent {
		rec = decide.Record{Sequence: 7, Operation: 3}
	}
	return rec
}
