package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// A VM that is started and stopped by work of this process: starting goes back
// to the origin at the deadline, rebooting is done again.
var workVM = fsm.Must[size](fsm.Spec[state, event]{
	Name: "work-vm", Initial: "none", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[state]{
		{Name: "none", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "stopped"},
		{Name: "running"},
		{Name: "failed", Kind: fsm.Failed},
		{Name: "starting", Kind: fsm.Transitional},
		{Name: "stopping", Kind: fsm.Transitional},
		{Name: "rebooting", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
		{Name: "inspecting", Kind: fsm.Transitional, Manual: "an engineer looks at it"},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "create", "creating").By("user"),
		fsm.Move[state, event]("creating", "done", "stopped").By("worker"),
		fsm.Move[state, event]("creating", "fail", "failed").By("worker"),
		fsm.Move[state, event]("creating", "late", "failed").After(time.Minute),
		fsm.Move[state, event]("stopped", "start", "starting").By("user"),
		fsm.Move[state, event]("starting", "done", "running").By("worker"),
		fsm.Return[state, event]("starting", "fail").By("worker"),
		fsm.Return[state, event]("starting", "late").After(time.Minute),
		fsm.Move[state, event]("running", "stop", "stopping").By("user"),
		fsm.Move[state, event]("stopping", "done", "stopped").By("worker"),
		fsm.Return[state, event]("stopping", "fail").By("worker"),
		fsm.Return[state, event]("stopping", "late").After(time.Minute),
		fsm.Move[state, event]("running", "inspect", "inspecting").By("user"),
		fsm.Move[state, event]("inspecting", "done", "running").By("worker"),
		fsm.Ignore[state, event]("inspecting", "cancel").By("worker"),
		fsm.Move[state, event]("running", "rename", "running").By("user"),
		fsm.Ignore[state, event]("running", "start").By("user"),
		fsm.Move[state, event]("rebooting", "progress", "rebooting").By("worker"),
		fsm.Move[state, event]("running", "reboot", "rebooting").By("user"),
		fsm.Move[state, event]("rebooting", "done", "running").By("worker"),
		fsm.Move[state, event]("rebooting", "fail", "failed").By("worker"),
		fsm.Redo[state, event]("rebooting", "late", time.Minute),
		fsm.Move[state, event]("stopped", "delete", "deleting").AlsoFrom("failed").By("user"),
		fsm.Move[state, event]("starting", "delete", "deleting").By("user").Superseding(),
		fsm.Move[state, event]("deleting", "done", "none").By("worker"),
		fsm.Move[state, event]("deleting", "fail", "failed").By("worker"),
		fsm.Move[state, event]("deleting", "late", "failed").After(time.Minute),
	),
})

// workers is a manager of such VMs; what it needs to do work is filled in.
func workers(store lifecycle.Store, config lifecycle.Config[event]) *lifecycle.Manager[state, event, size] {
	config.WorkerActor, config.Done = "worker", []event{"done"}
	if config.Failed == nil {
		config.Failed = []event{"fail"}
	}
	return lifecycle.Must(workVM, store, &config)
}

// stopped and running make a VM that rests, in operation 1 and 2.
func stopped(t *testing.T, m *sizedManager, id string) {
	t.Helper()
	create(t, m, id, "create", user, size{N: 1})
	require.Equal(t, lifecycle.Applied, report(t, m, id, 1, "done", "worker", ""))
}

func running(t *testing.T, m *sizedManager, id string) {
	t.Helper()
	stopped(t, m, id)
	fire(t, m, id, "start", user, nil)
	require.Equal(t, lifecycle.Applied, report(t, m, id, 2, "done", "worker", ""))
}

// untilEnded is work that runs until its context ends.
func untilEnded(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// fine is work that succeeds.
func fine(context.Context) error { return nil }

// story is an object's history after a number of commits, a line each.
func story(t *testing.T, m *sizedManager, id string, after uint64) (lines []string) {
	t.Helper()
	rows := rowsOf(t, m, id, after, 0)
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%d: %s -%s-> %s by %s", row.Operation, or(row.From, "none"), row.Event, row.To, row.Actor))
	}
	return lines
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

var errBoom = errors.New("boom")
