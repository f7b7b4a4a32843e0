package crashtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// verify checks the end of a point. All goroutines wait, and synctest.Wait has ordered what
// they did before it: no lock is needed.
func (s *simulation) verify() {
	if s.scriptErr != nil && s.unnoticed() {
		s.report("the script: %v", s.scriptErr)
	}
	if s.fault != nil && !s.hit {
		s.report("the write is not reached: the script does not do the same every time")
	}
	keys := maps.Clone(s.keys)
	for k := range s.scenario.Ends {
		keys[k] = true
	}
	for k := range keys {
		m := s.managers[k.Machine] // without a table for owners
		r, rows, err := audit(context.Background(), s.inner, m.table, k)
		if err != nil {
			s.report("%v", err)
		}
		s.state(&r, m.table)
		s.lost(k, rows)
		s.effects(k, m, rows)
	}
	s.messages()
	if i := slices.IndexFunc(s.processes, (*Process).lives); i < 0 {
		s.report("no process lives")
	} else if err := s.scenario.Check(s.ctx, s.processes[i].app); err != nil {
		s.report("%v", err)
	}
}

// state checks the state in which the object has ended.
func (s *simulation) state(r *lifecycle.StoredRecord, t *fsm.Table) {
	allowed, named := s.scenario.Ends[r.Key]
	switch {
	case named && slices.Contains(allowed, r.State):
	case named:
		s.report("%s is %s in the end, allowed are %q", nameOf(r.Key), cmp.Or(r.State, "absent"), allowed)
	case t != nil:
		if i, ok := t.StateIndex(r.State); ok && t.States[i].Kind == fsm.Transitional {
			s.report("%s is still %s in the end", nameOf(r.Key), r.State)
		}
	}
}

// lost finds writes that were acknowledged to a process and are not there.
func (s *simulation) lost(k lifecycle.Key, rows []lifecycle.HistoryRow) {
	for i := range s.acknowledged {
		known := &s.acknowledged[i]
		if known.Key != k || len(rows) > 0 && known.Sequence < rows[0].Sequence {
			continue
		}
		found := slices.ContainsFunc(rows, func(row lifecycle.HistoryRow) bool {
			return row.Token == known.Token && row.Sequence == known.Sequence
		})
		if !found {
			s.report("it was acknowledged and is lost: %v", known)
		}
	}
}

// effects finds operations that are recorded as done and were not applied.
func (s *simulation) effects(k lifecycle.Key, m manager, rows []lifecycle.HistoryRow) {
	for _, row := range rows {
		done := m.worker != "" && row.Actor == m.worker && slices.Contains(m.done, row.Event)
		if done && s.outside.applied[operation{k, row.Operation}] == "" {
			s.report("it is recorded as done, and was not applied: %v", row)
		}
	}
}

// lineOf returns a text that identifies a message.
func lineOf(m lifecycle.Message) string { return fmt.Sprintf("%s %q %q", m.Topic, m.Key, m.Payload) }

// messages checks that every message is there once for every commit that contained it.
func (s *simulation) messages() {
	list, err := s.inner.Messages(context.Background(), everything)
	if err != nil {
		s.report("Messages: %v", err)
		return
	}
	found := map[string]int{}
	for i := range list {
		found[lineOf(list[i].Message)]++
	}
	for m, n := range s.sent {
		if found[m] != n {
			s.report("the message %s is there %d times, it was committed %d times", m, found[m], n)
		}
	}
}
