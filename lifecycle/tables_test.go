package lifecycle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

type (
	state string
	event string
)

const (
	user  fsm.Actor = "user"
	agent fsm.Actor = "agent"
)

// size is a payload without references, box one that is full of them.
type (
	size struct{ N int }
	box  struct {
		N      int
		Tags   []string
		Labels map[string]string
		Parent *box
	}
)

// vmTable has an absent state and most forms of rows.
func vmTable(fits fsm.AnyGuard) fsm.Spec[state, event] {
	return fsm.Spec[state, event]{
		Name: "vm", Initial: "None", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{
			{Name: "None", Kind: fsm.Absent},
			{Name: "Creating", Kind: fsm.Transitional, Target: new(state("Ready"))},
			{Name: "Ready"},
			{Name: "Updating", Kind: fsm.Transitional, Target: new(state("Ready"))},
			{Name: "Moving", Kind: fsm.Transitional},
			{Name: "Deleting", Kind: fsm.Transitional},
			{Name: "Failed", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move[state, event]("None", "create", "Creating").By(user).If(fits),
			fsm.Move[state, event]("None", "import", "Ready").By(user),
			fsm.Move[state, event]("Creating", "progress", "Creating").By(agent),
			fsm.Move[state, event]("Updating", "progress", "Updating").By(agent),
			fsm.Move[state, event]("Creating", "done", "Ready").AlsoFrom("Updating").By(agent),
			fsm.Move[state, event]("Creating", "fail", "Failed").AlsoFrom("Updating").By(agent),
			fsm.Move[state, event]("Creating", "late", "Failed").AlsoFrom("Updating").After(time.Hour),
			fsm.Move[state, event]("Creating", "delete", "Deleting").AlsoFrom("Updating").By(user).Superseding(),
			fsm.Ignore[state, event]("Ready", "ping"),
			fsm.Move[state, event]("Ready", "touch", "Ready"),
			fsm.Move[state, event]("Ready", "update", "Updating").By(user).If(fits),
			fsm.Move[state, event]("Updating", "move", "Moving").By(agent),
			fsm.Return[state, event]("Moving", "late").After(time.Minute),
			fsm.Return[state, event]("Moving", "done").By(agent),
			fsm.Move[state, event]("Failed", "retry", "Updating").By(user),
			fsm.Move[state, event]("Failed", "undo", "Ready").By(user, agent),
			fsm.Move[state, event]("Failed", "repair", "Ready").AlsoFrom("Updating").By(user).OnlyForced(),
			fsm.Move[state, event]("Ready", "delete", "Deleting").AlsoFrom("Failed").By(user),
			fsm.Move[state, event]("Deleting", "done", "None").By(agent),
			fsm.Return[state, event]("Deleting", "late").After(10*time.Minute),
		),
	}
}

func tooLarge(n int) error {
	if n > 100 {
		return fmt.Errorf("%d is more than 100", n)
	}
	return nil
}

// Three machines of the same table, with three kinds of payloads.
var (
	sizedVM = fsm.Must[size](vmTable(fsm.When("fits", func(_ context.Context, _, p *size) error { return tooLarge(p.N) })))
	boxedVM = fsm.Must[box](vmTable(fsm.When("fits", func(_ context.Context, _, p *box) error {
		// Against the rules: a guard must not change the payload.
		defer func() { p.N, p.Tags, p.Labels["guard"] = -1, append(p.Tags, "guard"), "was here" }()
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		return tooLarge(p.N)
	})))
	emptyVM = fsm.Must[struct{}](vmTable(fsm.When("fits", func(context.Context, *struct{}, *struct{}) error { return nil })))
)

// lease is a table whose objects are added, in a transitional state.
var lease = fsm.Must[size](fsm.Spec[state, event]{
	Name: "lease", Initial: "Starting", Actors: []fsm.Actor{user, agent},
	States: []fsm.State[state]{
		{Name: "Starting", Kind: fsm.Transitional},
		{Name: "Active"},
		{Name: "Ending", Kind: fsm.Transitional},
		{Name: "Over", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("Starting", "start", "Active").By(agent),
		fsm.Move[state, event]("Starting", "late", "Active").After(time.Minute),
		fsm.Move[state, event]("Active", "touch", "Active").By(user),
		fsm.Ignore[state, event]("Active", "start").By(agent),
		fsm.Move[state, event]("Active", "late", "Ending").After(24*time.Hour),
		fsm.Move[state, event]("Active", "end", "Ending").By(user),
		fsm.Move[state, event]("Ending", "end", "Over").By(agent).After(time.Minute),
		fsm.Ignore[state, event]("Over", "end").By(agent),
		fsm.Move[state, event]("Over", "start", "Starting").By(user).OnlyForced(),
	),
})

// noteTable has objects that rest when they are added, and may be removed.
func noteTable() fsm.Spec[state, event] {
	return fsm.Spec[state, event]{
		Name: "note", Initial: "Draft", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "Draft"}, {Name: "Gone", Kind: fsm.Absent}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Draft", "edit", "Draft"),
			fsm.Move[state, event]("Draft", "throw", "Gone").By(user),
			fsm.Move[state, event]("Gone", "write", "Draft").By(user),
		),
	}
}

// asking is a note whose edits are work, under a guard.
func asking(check func(ctx context.Context, before, after *size) error) *fsm.Machine[state, event, size] {
	return fsm.Must[size](fsm.Spec[state, event]{
		Name: "asking", Initial: "Draft", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{
			{Name: "Draft"}, {Name: "Editing", Kind: fsm.Transitional, Manual: "a user writes"},
		},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Draft", "open", "Editing"),
			fsm.Move[state, event]("Editing", "edit", "Editing").If(fsm.When("asks", check)),
			fsm.Move[state, event]("Editing", "edit by force", "Editing"),
			fsm.Return[state, event]("Editing", "close"),
		),
	})
}

var note = fsm.Must[size](noteTable())

type sizedManager = lifecycle.Manager[state, event, size]
