package conform

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func boat(t *testing.T) *machine {
	t.Helper()
	m, err := fsm.New[struct{}](boats())
	require.NoError(t, err)
	return m
}

func TestWalk(t *testing.T) {
	Walk(t, boat(t), nil)
}

// Each case changes the plain table behind the back of the machine that was
// compiled from it: what the machine does is then not what the table says.
func TestWalkNotices(t *testing.T) {
	for _, c := range []struct {
		change string
		lie    func(*fsm.Table)
		want   string
	}{
		{"target", func(m *fsm.Table) { m.Rows[8].To = 2 }, "boat in {at sea at sea}: return by skipper"},
		{"actor", func(m *fsm.Table) { m.Rows[8].Actors[0] = 1 }, "boat in {at sea at sea}: return by crew"},
		{"origin", func(m *fsm.Table) { m.Rows[6].Origin[0] = 2 }, "boat in {leaving moored}: left by crew"},
		{"a row less", func(m *fsm.Table) { m.Rows = m.Rows[:14] }, "boat in {leaking leaking}: repair by crew"},
		{"a row that never fires", func(m *fsm.Table) { m.Rows = append(m.Rows, m.Rows[0]) }, "boat: row 15 never fired"},
		{"not forced", func(m *fsm.Table) { m.Rows[13].Forced = false }, "boat in {sunk sunk}: raise by skipper"},
		{"not ignored", func(m *fsm.Table) { m.Rows[9].Then, m.Rows[9].To = fsm.ThenMove, 1 }, "boat in {at sea at sea}: launch by skipper"},
		{"no return", func(m *fsm.Table) { m.Rows[3].Then, m.Rows[3].To = fsm.ThenMove, 5 }, "boat in {cleaning moored}: cleaned by crew"},
	} {
		t.Run(c.change, func(t *testing.T) {
			m := boat(t)
			c.lie(m.Table())
			lines := record(func(r testing.TB) { Walk(r, m, nil) })
			require.Contains(t, strings.Join(lines, "\n"), c.want)
		})
	}
}

func TestWalkNoticesARowThatCannotFire(t *testing.T) {
	s := boats()
	s.Rows[10].Guard = fsm.When("never", func(context.Context, *struct{}, *struct{}) error { return errors.New("no") })
	m, err := fsm.New[struct{}](s)
	require.NoError(t, err)
	lines := strings.Join(record(func(r testing.TB) { Walk(r, m, nil) }), "\n")
	require.Contains(t, lines, "boat: row 10 never fired")
	require.Contains(t, lines, "boat: row 13 never fired", "nothing gets to its source")
	require.Contains(t, lines, "boat: state sunk was never entered")
}
