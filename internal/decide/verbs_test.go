package decide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// disks is a small table with most forms of rows in it.
var disks = fsm.Must[int](spec{
	Name: "disk", Initial: "None", Actors: actors,
	States: []fsm.State[string]{
		{Name: "None", Kind: fsm.Absent},
		{Name: "Making", Kind: fsm.Transitional},
		{Name: "Ready"},
		{Name: "Resizing", Kind: fsm.Transitional},
		{Name: "Deleting", Kind: fsm.Transitional, Manual: "tests"},
		{Name: "Bad", Kind: fsm.Failed},
		{Name: "Lost", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move("None", "make", "Making").By("user"),
		fsm.Move("None", "adopt", "Ready").By("user").If(guard("known")),
		fsm.Ignore("None", "delete").By("user"),
		fsm.Move("Making", "done", "Ready").AlsoFrom("Resizing").By("agent"),
		fsm.Move("Making", "progress", "Making").By("agent"),
		fsm.Move("Making", "check", "Making").By("agent").If(guard("sound")),
		fsm.Move("Making", "late", "Bad").After(time.Hour),
		fsm.Move("Making", "delete", "Deleting").By("user").Superseding(),
		fsm.Move("Making", "repair", "Bad").By("user").OnlyForced(),
		fsm.Ignore("Ready", "done").By("agent"),
		fsm.Move("Ready", "resize", "Resizing").By("user").If(guard("larger")),
		fsm.Move("Ready", "resize", "Ready").By("user").If(guard("same size")),
		fsm.Move("Ready", "rename", "Ready"),
		fsm.Move("Ready", "delete", "Deleting").AlsoFrom("Bad").By("user"),
		fsm.Return("Resizing", "late").After(time.Minute),
		fsm.Move("Deleting", "done", "None").By("agent"),
		fsm.Return("Deleting", "refused").By("agent"),
		fsm.Move("Deleting", "gone", "Lost").By("agent").Of("Bad"),
		fsm.Move("Bad", "repair", "Ready").By("user").OnlyForced(),
		fsm.Move("Lost", "found", "Bad").By("agent").OnlyForced(),
	),
}).Table()

// leases is a table whose objects are added.
var leases = fsm.Must[int](spec{
	Name: "lease", Initial: "Starting", Actors: actors,
	States: []fsm.State[string]{{Name: "Starting", Kind: fsm.Transitional}, {Name: "Active"}},
	Rows: fsm.Rows(
		fsm.Move("Starting", "start", "Active").By("agent").After(time.Minute),
		fsm.Move("Active", "start", "Starting").By("user"),
	),
}).Table()

// papers rest when they are added, and may be thrown away and made anew.
var papers = fsm.Must[int](spec{
	Name: "paper", Initial: "Draft", Actors: actors,
	States: []fsm.State[string]{{Name: "Draft"}, {Name: "Gone", Kind: fsm.Absent}},
	Rows: fsm.Rows(
		fsm.Move("Draft", "throw", "Gone").By("user"),
		fsm.Move("Gone", "write", "Draft").By("user"),
		fsm.Move("Gone", "restore", "Draft").Of("Gone").By("user"),
	),
}).Table()

// at is an object in a state with sequence number 7 and operation 3.
func at(t *testing.T, table *fsm.Table, state string, origin ...string) decide.Record {
	t.Helper()
	return record(t, table, state, append(origin, state)[0])
}

func stateOf(t *testing.T, table *fsm.Table, name string) int {
	t.Helper()
	i, ok := table.StateIndex(name)
	require.True(t, ok, "state %s", name)
	return i
}

type verbCase struct {
	name    string
	state   string // "" for an object that is not there
	origin  string
	event   string
	actor   fsm.Actor
	op      uint64 // of a report
	enters  string // of an Add; "": the initial state
	with    decide.Request
	refuses []string // guards

	verdict  decide.Verdict
	err      error
	to, orig string // where a write leads
	opAfter  uint64
	timeout  time.Duration
	removes  bool
	work     decide.Work
}

func run(t *testing.T, table *fsm.Table, verb decide.Verb, cases []verbCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := decide.Record{Sequence: 7, Operation: 3}
			if c.state != "" {
				rec = at(t, table, c.state, c.origin)
				if c.origin == "" {
					rec = at(t, table, c.state)
				}
			}
			if c.with.Owned || c.with.Sweep {
				rec.Owner, rec.Epoch, rec.Work = "p", 2, true
			}
			q := c.with
			q.Verb, q.Actor, q.Operation = verb, c.actor, c.op
			if verb == decide.Add {
				q.To = table.Initial
				if c.enters != "" {
					q.To = stateOf(t, table, c.enters)
				}
			}
			if c.event != "" {
				q.Event = event(t, table, c.event)
			}
			d := decision(table, rec, q, func(row int) error {
				for _, g := range c.refuses {
					if table.Rows[row].Guard == g {
						return errReason
					}
				}
				return nil
			})
			require.ErrorIs(t, d.Err, c.err)
			if c.with.Repeats && d.Verdict == decide.Repeated || d.Verdict == decide.Stale {
				require.Equal(t, -1, d.Row, "no row fires")
			}
			want := decide.Decision{Row: d.Row, Err: d.Err, Verdict: c.verdict, Saves: d.Saves, Saved: d.Saved}
			if c.to != "" {
				want.Write, want.Sequence, want.Operation = true, 8, c.opAfter
				want.State, want.Origin = stateOf(t, table, c.to), stateOf(t, table, c.orig)
				furtherLife := verb <= decide.Add && table.States[want.State].Kind.Resting() // begins none
				want.Begins = c.opAfter > 3 && !furtherLife
				want.Removes, want.Timeout, want.Work = c.removes, c.timeout, c.work
			}
			if diff := cmp.Diff(want, d, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	run(t, disks, decide.Create, []verbCase{
		{name: "into work", event: "make", actor: "user", to: "Making", orig: "None", opAfter: 4, timeout: time.Hour},
		{name: "into work, also if it may exist", with: decide.Request{MayExist: true}, event: "make", actor: "user", to: "Making", orig: "None", opAfter: 4, timeout: time.Hour},
		{name: "into rest", event: "adopt", actor: "user", to: "Ready", orig: "Ready", opAfter: 4},
		{name: "guard", event: "adopt", actor: "user", refuses: []string{"known"}, verdict: decide.Refused, err: fsm.ErrGuard},
		{name: "exists", state: "Ready", event: "make", actor: "user", verdict: decide.Refused, err: decide.ErrExists},
		{name: "exists, and the event is nonsense", state: "Bad", event: "late", actor: "undeclared", verdict: decide.Refused, err: decide.ErrExists},
		{name: "wrong actor", event: "make", actor: "agent", verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "no row", event: "resize", actor: "user", verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "no row, and it may exist", with: decide.Request{MayExist: true}, event: "resize", actor: "user", verdict: decide.Refused, err: decide.ErrNotFound},
		{name: "ignored", event: "delete", actor: "user", verdict: decide.Repeated},
	})
	run(t, leases, decide.Create, []verbCase{
		{name: "no absent state", event: "start", actor: "user", verdict: decide.Refused, err: decide.ErrNoEntry},
		{name: "no absent state, and it may exist", with: decide.Request{MayExist: true}, event: "start", actor: "user", verdict: decide.Refused, err: decide.ErrNotFound},
	})
	run(t, papers, decide.Create, []verbCase{
		{name: "out of an absent state that is not the first", event: "write", actor: "user", to: "Draft", orig: "Draft", opAfter: 4},
		{name: "out of an absent state, which is its own origin", event: "restore", actor: "user", to: "Draft", orig: "Draft", opAfter: 4},
	})
}

func TestAdd(t *testing.T) {
	run(t, leases, decide.Add, []verbCase{
		{name: "into work", actor: "user", to: "Starting", orig: "Starting", opAfter: 4, timeout: time.Minute},
		{name: "exists", state: "Active", actor: "user", verdict: decide.Refused, err: decide.ErrExists},
	})
	run(t, papers, decide.Add, []verbCase{
		{name: "into rest", actor: "user", to: "Draft", orig: "Draft", opAfter: 4},
	})
	run(t, disks, decide.Add, []verbCase{
		{name: "absent at first", actor: "user", verdict: decide.Refused, err: decide.ErrNoEntry},
		{name: "into another state than the initial one", enters: "Bad", actor: "user", to: "Bad", orig: "Bad", opAfter: 4},
	})
}

func TestFire(t *testing.T) {
	force := decide.Request{Force: true}
	run(t, disks, decide.Fire, []verbCase{
		{name: "begins", state: "Ready", event: "resize", actor: "user", to: "Resizing", orig: "Ready", opAfter: 4, timeout: time.Minute},
		{name: "second guard", state: "Ready", event: "resize", actor: "user", refuses: []string{"larger"}, to: "Ready", orig: "Ready", opAfter: 3},
		{name: "all guards refuse", state: "Ready", event: "resize", actor: "user", refuses: []string{"larger", "same size"}, verdict: decide.Refused, err: fsm.ErrGuard},
		{name: "rests on", state: "Ready", event: "rename", actor: "agent", to: "Ready", orig: "Ready", opAfter: 3},
		{name: "goes on", state: "Making", origin: "None", event: "progress", actor: "agent", to: "Making", orig: "None", opAfter: 3, timeout: time.Hour, work: decide.SameWork},
		{name: "ends", state: "Making", origin: "None", event: "done", actor: "agent", to: "Ready", orig: "Ready", opAfter: 3},
		{name: "supersedes", state: "Making", origin: "None", event: "delete", actor: "user", to: "Deleting", orig: "None", opAfter: 4},
		{name: "returns", state: "Deleting", origin: "Bad", event: "refused", actor: "agent", to: "Bad", orig: "Bad", opAfter: 3},
		{name: "of this origin", state: "Deleting", origin: "Bad", event: "gone", actor: "agent", to: "Lost", orig: "Lost", opAfter: 3},
		{name: "of another origin", state: "Deleting", origin: "Ready", event: "gone", actor: "agent", verdict: decide.Refused, err: decide.ErrBusy},
		{name: "removes", state: "Deleting", origin: "Ready", event: "done", actor: "agent", to: "None", orig: "None", opAfter: 3, removes: true},
		{name: "ignored", state: "Ready", event: "done", actor: "agent", verdict: decide.Repeated},
		{name: "busy", state: "Making", origin: "None", event: "resize", actor: "user", verdict: decide.Refused, err: decide.ErrBusy},
		{name: "busy is not allowed too", state: "Making", origin: "None", event: "resize", actor: "user", verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "busy, without force", state: "Making", origin: "None", event: "repair", actor: "user", verdict: decide.Refused, err: decide.ErrBusy},
		{name: "busy, and only by force", state: "Making", origin: "None", event: "repair", actor: "user", verdict: decide.Refused, err: fsm.ErrForcedOnly},
		{name: "by force in transition", state: "Making", origin: "None", event: "repair", actor: "user", with: force, to: "Bad", orig: "Bad", opAfter: 3},
		{name: "wrong actor in transition", state: "Making", origin: "None", event: "done", actor: "user", verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "wrong actor", state: "Ready", event: "resize", actor: "agent", verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "undeclared actor", state: "Ready", event: "rename", actor: "undeclared", verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "wrong state", state: "Ready", event: "make", actor: "user", verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "only by force", state: "Bad", event: "repair", actor: "user", verdict: decide.Refused, err: fsm.ErrForcedOnly},
		{name: "by force", state: "Bad", event: "repair", actor: "user", with: force, to: "Ready", orig: "Ready", opAfter: 3},
		{name: "by force, an ordinary row", state: "Bad", event: "delete", actor: "user", with: force, to: "Deleting", orig: "Bad", opAfter: 4},
		{name: "force does not replace an actor", state: "Bad", event: "repair", actor: "agent", with: force, verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "not there", event: "resize", actor: "user", verdict: decide.Refused, err: decide.ErrNotFound},
		{name: "not there, though a row leads out of absence", event: "make", actor: "user", verdict: decide.Refused, err: decide.ErrNotFound},
	})
}

func TestReport(t *testing.T) {
	repeats := decide.Request{Repeats: true}
	run(t, disks, decide.Report, []verbCase{
		{name: "applied", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, to: "Ready", orig: "Ready", opAfter: 3},
		{name: "applied though it was before", state: "Making", origin: "None", event: "progress", actor: "agent", op: 3, with: repeats, to: "Making", orig: "None", opAfter: 3, timeout: time.Hour, work: decide.SameWork},
		{name: "removes", state: "Deleting", origin: "Ready", event: "done", actor: "agent", op: 3, to: "None", orig: "None", opAfter: 3, removes: true},
		{name: "at rest", state: "Ready", event: "rename", actor: "agent", op: 3, to: "Ready", orig: "Ready", opAfter: 3},
		{name: "at rest, and was accepted", state: "Ready", event: "rename", actor: "agent", op: 3, with: repeats, verdict: decide.Repeated},
		{name: "stale", state: "Making", origin: "None", event: "done", actor: "agent", op: 2, verdict: decide.Stale, err: decide.ErrStale},
		{name: "stale, and was accepted then", state: "Making", origin: "None", event: "done", actor: "agent", op: 2, with: repeats, verdict: decide.Stale, err: decide.ErrStale},
		{name: "without an operation", state: "Making", origin: "None", event: "done", actor: "agent", op: 0, verdict: decide.Stale, err: decide.ErrStale},
		{name: "of the future", state: "Making", origin: "None", event: "done", actor: "agent", op: 4, verdict: decide.Refused, err: decide.ErrStale},
		{name: "stale, after removal", event: "done", actor: "agent", op: 2, verdict: decide.Stale, err: decide.ErrStale},
		{name: "repeated, after removal", event: "done", actor: "agent", op: 3, with: repeats, verdict: decide.Repeated},
		{name: "late, after removal", event: "progress", actor: "agent", op: 3, verdict: decide.Refused, err: decide.ErrNotFound},
		{name: "late", state: "Ready", event: "progress", actor: "agent", op: 3, verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "repeated", state: "Ready", event: "progress", actor: "agent", op: 3, with: repeats, verdict: decide.Repeated},
		{name: "ignored by the table", state: "Ready", event: "done", actor: "agent", op: 3, verdict: decide.Repeated},
		{name: "wrong actor", state: "Making", origin: "None", event: "done", actor: "user", op: 3, verdict: decide.Refused, err: fsm.ErrWrongActor},
		{name: "refused in transition", state: "Making", origin: "None", event: "resize", actor: "agent", op: 3, verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "only by force", state: "Bad", event: "repair", actor: "user", op: 3, verdict: decide.Refused, err: fsm.ErrForcedOnly},
		{name: "guard", state: "Ready", event: "resize", actor: "user", op: 3, refuses: []string{"larger", "same size"}, verdict: decide.Refused, err: fsm.ErrGuard},
		{name: "guard refuses what was accepted", state: "Making", origin: "None", event: "check", actor: "agent", op: 3, with: repeats, refuses: []string{"sound"}, verdict: decide.Repeated},
		{name: "guard agrees to what was accepted", state: "Making", origin: "None", event: "check", actor: "agent", op: 3, with: repeats, to: "Making", orig: "None", opAfter: 3, timeout: time.Hour, work: decide.SameWork},
		{name: "would begin an operation", state: "Ready", event: "delete", actor: "user", op: 3, verdict: decide.Refused, err: decide.ErrBegins},
		{name: "would supersede", state: "Making", origin: "None", event: "delete", actor: "user", op: 3, verdict: decide.Refused, err: decide.ErrBegins},
	})
}

// TestOwnReport: the reports of the process that executes the operation. Owner p
// executes operation 3 in its second epoch.
func TestOwnReport(t *testing.T) {
	by := func(owner string, epoch uint64) decide.Request {
		return decide.Request{Owned: true, Owner: owner, Epoch: epoch}
	}
	run(t, disks, decide.Report, []verbCase{
		{name: "by the owner", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, with: by("p", 2), to: "Ready", orig: "Ready", opAfter: 3},
		{name: "by the owner, on the way", state: "Making", origin: "None", event: "progress", actor: "agent", op: 3, with: by("p", 2), to: "Making", orig: "None", opAfter: 3, timeout: time.Hour, work: decide.SameWork},
		{name: "by an earlier life", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, with: by("p", 1), verdict: decide.Stale, err: decide.ErrStale},
		{name: "by a later life", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, with: by("p", 3), verdict: decide.Stale, err: decide.ErrStale},
		{name: "by another", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, with: by("q", 2), verdict: decide.Stale, err: decide.ErrStale},
		{name: "by no owner", state: "Making", origin: "None", event: "done", actor: "agent", op: 3, with: by("", 0), verdict: decide.Stale, err: decide.ErrStale},
		{name: "of an older operation", state: "Making", origin: "None", event: "done", actor: "agent", op: 2, with: by("p", 2), verdict: decide.Stale, err: decide.ErrStale},
	})
}

// TestHeartbeat: owner p executes operation 3 in its second epoch. Its heartbeat
// extends the deadline and changes nothing else.
func TestHeartbeat(t *testing.T) {
	of := func(operation uint64, owner string, epoch uint64) decide.Request {
		return decide.Request{Verb: decide.Heartbeat, Operation: operation, Owned: true, Owner: owner, Epoch: epoch}
	}
	cases := []struct {
		name, state, origin string
		q                   decide.Request
		timeout             time.Duration
		verdict             decide.Verdict
		err                 error
	}{
		{"with a deadline", "Making", "None", of(3, "p", 2), time.Hour, decide.Applied, nil},
		{"without a deadline", "Deleting", "Ready", of(3, "p", 2), 0, decide.Applied, nil},
		{"without an owner", "Making", "None", decide.Request{Verb: decide.Heartbeat, Operation: 3}, time.Hour, decide.Applied, nil},
		{"at rest", "Ready", "Ready", of(3, "p", 2), 0, decide.Stale, decide.ErrStale},
		{"removed", "None", "None", of(3, "p", 2), 0, decide.Refused, decide.ErrNotFound},
		{"of an earlier operation", "Making", "None", of(2, "p", 2), 0, decide.Stale, decide.ErrStale},
		{"of a later operation", "Making", "None", of(4, "p", 2), 0, decide.Refused, decide.ErrStale},
		{"of no operation", "Making", "None", of(0, "p", 2), 0, decide.Stale, decide.ErrStale},
		{"by an earlier epoch", "Making", "None", of(3, "p", 1), 0, decide.Stale, decide.ErrStale},
		{"by another owner", "Making", "None", of(3, "q", 2), 0, decide.Stale, decide.ErrStale},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, disks, c.state, c.origin)
			rec.Owner, rec.Epoch, rec.Work, rec.Saved = "p", 2, true, true
			want := decide.Decision{Row: -1, Verdict: c.verdict, Err: c.err}
			if c.timeout > 0 {
				want.Write, want.MetadataOnly, want.Timeout = true, true, c.timeout
				want.Work, want.Saved = decide.SameWork, true
				want.State, want.Origin, want.Sequence, want.Operation = rec.State, rec.Origin, 7, 3
			}
			require.Equal(t, want, decision(disks, rec, c.q, nil))
		})
	}
}

func TestFireWithWork(t *testing.T) {
	work, may, sweep := decide.Request{Work: true}, decide.Request{Work: true, MayExist: true}, decide.Request{Sweep: true}
	run(t, disks, decide.Create, []verbCase{
		{name: "made", event: "make", actor: "user", with: work, to: "Making", orig: "None", opAfter: 4, timeout: time.Hour, work: decide.NewWork},
	})
	run(t, disks, decide.Fire, []verbCase{
		{name: "begins", state: "Ready", event: "resize", actor: "user", with: work, to: "Resizing", orig: "Ready", opAfter: 4, timeout: time.Minute, work: decide.NewWork},
		{name: "supersedes", state: "Making", origin: "None", event: "delete", actor: "user", with: work, to: "Deleting", orig: "None", opAfter: 4, work: decide.NewWork},
		{name: "begins nothing", state: "Ready", event: "rename", actor: "user", with: work, to: "Ready", orig: "Ready", opAfter: 3},
		{name: "creates what rests", state: "Ready", event: "make", actor: "user", with: may, verdict: decide.Refused, err: decide.ErrExists},
		{name: "creates what is being created", state: "Making", origin: "None", event: "make", actor: "user", with: may, verdict: decide.Refused, err: decide.ErrExists},
		{name: "does not only create", state: "Deleting", origin: "Ready", event: "delete", actor: "user", with: may, verdict: decide.Refused, err: decide.ErrBusy},
		{name: "fires a creation", state: "Ready", event: "make", actor: "user", with: work, verdict: decide.Refused, err: fsm.ErrNotAllowed},
		{name: "swept to rest", state: "Making", origin: "None", event: "late", actor: fsm.Sweeper, with: sweep, to: "Bad", orig: "Bad", opAfter: 3},
	})
	run(t, polls, decide.Fire, []verbCase{
		{name: "swept to do it again", state: "Asking", origin: "Idle", event: "late", actor: fsm.Sweeper, with: sweep, to: "Asking", orig: "Idle", opAfter: 4, timeout: time.Minute, work: decide.Redo},
		{name: "swept to give up", state: "Asking", origin: "Idle", event: "late", actor: fsm.Sweeper, with: sweep, refuses: []string{"not yet often"}, to: "Idle", orig: "Idle", opAfter: 3},
	})
}

// polls looks again after a minute, and fails in the end.
var polls = fsm.Must[int](spec{
	Name: "poll", Initial: "Idle", Actors: actors,
	States: []fsm.State[string]{{Name: "Idle"}, {Name: "Asking", Kind: fsm.Transitional}},
	Rows: fsm.Rows(
		fsm.Move("Idle", "ask", "Asking").By("user"),
		fsm.Redo("Asking", "late", time.Minute).If(guard("not yet often")),
		fsm.Return("Asking", "late").After(time.Minute),
	),
}).Table()

func TestOverride(t *testing.T) {
	to := func(state string) decide.Request { return decide.Request{To: stateOf(t, disks, state)} }
	run(t, disks, decide.Override, []verbCase{
		{name: "at rest", state: "Ready", actor: "ann", with: to("Bad"), to: "Bad", orig: "Bad", opAfter: 4},
		{name: "into the same state", state: "Ready", actor: "ann", with: to("Ready"), to: "Ready", orig: "Ready", opAfter: 4},
		{name: "out of work", state: "Making", origin: "None", actor: "ann", with: to("Ready"), to: "Ready", orig: "Ready", opAfter: 4},
		{name: "into work", state: "Ready", actor: "ann", with: to("Resizing"), to: "Resizing", orig: "Ready", opAfter: 4, timeout: time.Minute},
		{name: "from work into work", state: "Making", origin: "None", actor: "ann", with: to("Deleting"), to: "Deleting", orig: "None", opAfter: 4},
		{name: "out of a final state", state: "Lost", actor: "ann", with: to("Ready"), to: "Ready", orig: "Ready", opAfter: 4},
		{name: "away", state: "Making", origin: "None", actor: "ann", with: to("None"), to: "None", orig: "None", opAfter: 4, removes: true},
		{name: "not there", actor: "ann", with: to("Ready"), verdict: decide.Refused, err: decide.ErrNotFound},
	})
}

// TestReportOfNoOperation: zero means no operation, also of an object that has had
// none.
func TestReportOfNoOperation(t *testing.T) {
	q := decide.Request{Verb: decide.Report, Event: event(t, disks, "rename"), Actor: "agent"}
	for _, exists := range []bool{true, false} {
		rec := at(t, disks, "Ready")
		rec.Operation, rec.Exists = 0, exists
		d := decision(disks, rec, q, nil)
		require.ErrorIs(t, d.Err, decide.ErrStale)
		require.Equal(t, decide.Refused, d.Verdict)
		require.False(t, d.Write)
	}
}

// TestBusyIsOfFire: a report that the table refuses in a transitional state is not
// refused with ErrBusy.
func TestBusyIsOfFire(t *testing.T) {
	q := decide.Request{Verb: decide.Report, Event: event(t, disks, "resize"), Actor: "agent", Operation: 3}
	d := decision(disks, at(t, disks, "Making", "None"), q, nil)
	require.NotErrorIs(t, d.Err, decide.ErrBusy)
}

// TestCandidatesAppend: the caller's slice is appended to, also where there is
// nothing to run, so that it can be reused.
func TestCandidatesAppend(t *testing.T) {
	q := decide.Request{Verb: decide.Fire, Event: event(t, disks, "resize"), Actor: "user"}
	ready := at(t, disks, "Ready")
	rows, _, ok := q.Candidates(disks, &ready, []int{-7})
	require.True(t, ok)
	require.Len(t, rows, 3)
	require.Equal(t, -7, rows[0])
	rows, _, ok = q.Candidates(disks, &decide.Record{}, []int{-7})
	require.False(t, ok)
	require.Equal(t, []int{-7}, rows)
}

// TestNoAllocation: a decision that needs no new error allocates nothing.
func TestNoAllocation(t *testing.T) {
	var buf [4]int
	rec := at(t, disks, "Making", "None")
	accepted := decide.Request{Verb: decide.Report, Event: event(t, disks, "done"), Actor: "agent", Operation: 3}
	stale := decide.Request{Verb: decide.Report, Event: event(t, disks, "done"), Actor: "agent", Operation: 2}
	guards := []error{nil}
	var sink decide.Decision
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, q := range []decide.Request{stale, accepted} {
			rows, d, ok := q.Candidates(disks, &rec, buf[:0])
			if ok {
				d = q.Decide(disks, &rec, rows, guards)
			}
			sink = d
		}
	}))
	require.NoError(t, sink.Err)
}

// A user requests another size of a disk. One of two guards refuses, and the other one passes.
func ExampleRequest() {
	state, _ := disks.StateIndex("Ready")
	resize, _ := disks.EventIndex("resize")
	rec := decide.Record{Exists: true, State: state, Origin: state, Sequence: 7, Operation: 3}
	q := decide.Request{Verb: decide.Fire, Event: resize, Actor: "user"}

	rows, _, _ := q.Candidates(disks, &rec, nil)
	for _, row := range rows {
		fmt.Println("run the guard:", disks.Rows[row].Guard)
	}
	d := q.Decide(disks, &rec, rows, []error{nil})
	fmt.Println("write:", disks.States[d.State].Name, "operation", d.Operation, "deadline", d.Timeout)
	// Output:
	// run the guard: larger
	// run the guard: same size
	// write: Resizing operation 4 deadline 1m0s
}
