package main

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

// ends is where everything has to be in the end.
var ends = map[lifecycle.Key]string{
	{Machine: "lattice-system", ID: "shop"}: "stable",

	{Machine: "lattice-deploy", ID: "shop/d1"}: "failed",
	{Machine: "lattice-deploy", ID: "shop/d2"}: "succeeded",
	{Machine: "lattice-deploy", ID: "shop/d3"}: "failed",
	{Machine: "lattice-deploy", ID: "shop/d4"}: "failed",
	{Machine: "lattice-deploy", ID: "shop/d5"}: "failed",
	{Machine: "lattice-deploy", ID: "shop/d6"}: "failed",
	{Machine: "lattice-deploy", ID: "shop/d7"}: "succeeded",
	{Machine: "lattice-deploy", ID: "bank/d1"}: "succeeded",
	{Machine: "lattice-deploy", ID: "bank/d2"}: "failed",

	{Machine: "lattice-teardown", ID: "shop/t1"}: "failed",
	{Machine: "lattice-teardown", ID: "shop/t2"}: "succeeded",
	{Machine: "lattice-teardown", ID: "shop/t3"}: "failed",
}

// verify returns an error if anything is not where it should be, or did not get
// there by rows of its table, or if a lock is left.
func (s *story) verify(b *backend) error {
	if s.err != nil {
		return s.err
	}
	found := map[lifecycle.Key]string{}
	for _, t := range []*fsm.Table{lattice.System.Table(), lattice.Service.Table(), lattice.Deploy.Table(), lattice.Teardown.Table()} {
		records, err := s.store.List(s.ctx, lifecycle.Query{Machine: t.Name, Limit: lifecycle.MaxPage})
		if err != nil {
			return err
		}
		for _, r := range records {
			found[r.Key] = r.State
			rows, err := s.store.History(s.ctx, r.Key, 0, lifecycle.MaxPage)
			if err != nil {
				return err
			}
			if err := path(t, rows); err != nil {
				return err
			}
		}
	}
	for key, state := range found {
		if want, ok := ends[key]; !ok || state != want {
			return fmt.Errorf("%s %s ended in %s, not in %q", key.Machine, key.ID, state, want)
		}
	}
	if len(found) != len(ends) {
		return fmt.Errorf("%d objects are left, not %d", len(found), len(ends))
	}
	for system := range b.Actions().Systems() {
		return fmt.Errorf("locks of %s are left", system)
	}
	s.say("in the end everything is where it should be, no lock is left, and every history is a path of its table")
	return nil
}

// path returns an error if a history is not a path of the table.
func path(t *fsm.Table, rows []lifecycle.HistoryRow) error {
	for _, row := range rows {
		if row.Event == "" && row.From == "" {
			continue // an addition
		}
		from, origin, err := t.Initial, t.Initial, error(nil)
		if row.From != "" {
			from, origin, err = t.ParseStatus(row.From, row.FromOrigin)
		}
		if err != nil {
			return err
		}
		event, ok := t.EventIndex(row.Event)
		if !ok {
			return fmt.Errorf("%v is no row of the table", row)
		}
		allowed, err := t.Candidates(nil, from, origin, event, row.Actor, false)
		if err != nil {
			return fmt.Errorf("%v: %w", row, err)
		}
		to := func(r int) string { next, _ := t.After(from, origin, r); return t.States[next].Name }
		if !slices.ContainsFunc(allowed, func(r int) bool { return to(r) == row.To }) {
			return fmt.Errorf("%v is no row of the table", row)
		}
	}
	return nil
}
