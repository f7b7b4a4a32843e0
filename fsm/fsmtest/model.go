package fsmtest

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/fsm"
)

// Model returns a driver that is nothing but the table of a machine: what a system
// should do, one request after another. It is not safe for concurrent use. It
// panics with a table that no machine was made of.
func Model(t *fsm.Table) Driver { return &model{t: t} }

type model struct {
	t             *fsm.Table
	state, origin int
}

func (m *model) Reset(testing.TB) string {
	m.state, m.origin = m.t.Initial, m.t.Initial
	return m.t.States[m.state].Name
}

func (m *model) Apply(_ testing.TB, r Request) (string, error) {
	name := m.t.States[m.state].Name
	event, ok := m.t.EventIndex(r.Event)
	if !ok {
		return name, fsm.ErrUnknownEvent
	}
	rows, err := m.t.Candidates(nil, m.state, m.origin, event, r.Actor, r.Force)
	if err != nil {
		return name, err
	}
	var reasons []error
	for _, row := range rows {
		if guard := m.t.Rows[row].Guard; guard == "" || slices.Contains(r.Agree, guard) {
			m.state, m.origin = m.t.After(m.state, m.origin, row)
			return m.t.States[m.state].Name, nil
		}
		reasons = append(reasons, ErrToldTo)
	}
	return name, m.t.Refused(m.state, m.origin, r.Actor, rows, reasons)
}
