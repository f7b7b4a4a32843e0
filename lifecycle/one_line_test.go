package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestOneLine: texts of users and peers stay within their line and have no terminal
// controls.
func TestOneLine(t *testing.T) {
	text := "it is up\n  user:\n\r\n    delete to none\x1b[2J\u202e"
	const line = `it is up; user:; delete to none\u001b[2J\u202e`
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{})
	running(t, m, "vm")
	override(t, m, "vm", "stopped", "ann", text, nil)
	x := explain(t, m, "vm")
	require.Equal(t, text, x.Reason)
	require.Contains(t, x.String(), "\n  last change: (override) by ann in operation 3: "+line+"\n  user:")
	rows := rowsOf(t, m, "vm", 0, 0)
	require.Equal(t, `work-vm "vm" #5 operation 3: running -(override)-> stopped by ann: `+line, rows[4].String())

	_, err := m.Fire(t.Context(), "vm", "start", user, &lifecycle.Change[size]{Edit: func(*size) error { return errors.New(text) }})
	require.EqualError(t, err, `lifecycle: fire work-vm "vm": start by user in stopped: `+line)
	ticket := do(t, m, "vm", "start", user, lifecycle.Func(func(context.Context) error { return errors.New(text) }), nil)
	_, err = ticket.Wait(t.Context())
	require.EqualError(t, err, `lifecycle: operation 4 of work-vm "vm" failed: `+line)
	require.Equal(t, `work-vm "a" in b, operation 0: not moved: `+line,
		lifecycle.SweepResult{Key: lifecycle.Key{Machine: "work-vm", ID: "a"}, From: "b", Resolution: lifecycle.NotMoved, Err: errors.New(text)}.String())
}

// TestErrorNamesTheState: the error about an undeclared state names it.
func TestErrorNamesTheState(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	running(t, m, "vm")
	_, err := m.Override(t.Context(), "vm", "runing", "ann", "a test", nil)
	require.EqualError(t, err, `lifecycle: override work-vm "vm" by ann: unknown state: runing`)
	_, err = m.List(t.Context(), lifecycle.Select[state]{States: []state{"running", "runing"}})
	require.EqualError(t, err, `lifecycle: list work-vm: unknown state: runing`)
}
