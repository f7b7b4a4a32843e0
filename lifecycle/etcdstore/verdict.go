package etcdstore

import (
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// verdict returns the outcome of a commit from what the plan's look has found: nil
// if it was written, what contradicts it, or [errAgain].
func (p *plan) verdict(resp *clientv3.TxnResponse) error {
	all := found(resp)
	for i := range p.changes {
		ch := &p.changes[i]
		now, err := p.current(all, ch.To.Key)
		if err != nil {
			return err
		}
		if now.Revision == ch.Expect && now.State == ch.From {
			continue
		}
		if written, err := p.written(all); err != nil || written {
			return err
		}
		return &lifecycle.ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
	}
	return p.unmet(all, resp)
}

// unmet returns what contradicts a commit besides its changes.
func (p *plan) unmet(all map[string]*mvccpb.KeyValue, resp *clientv3.TxnResponse) error {
	var held []bool // of the grants, in their order
	for _, r := range resp.Responses {
		if guard := r.GetResponseTxn(); guard != nil {
			held = append(held, guard.Succeeded)
		}
	}
	for i := range p.changes {
		ch := &p.changes[i]
		kv := all[p.key(requests, ch.To.Machine, ch.Request)]
		if ch.Request == "" || kv == nil {
			continue
		}
		row, err := decode[lifecycle.HistoryRow](kv)
		if err != nil {
			return err
		}
		return &lifecycle.RepeatedError{Row: row}
	}
	for i, r := range p.commit.Require {
		if r.Grant != nil {
			if !held[0] {
				return &lifecycle.PreconditionError{Precondition: r}
			}
			held = held[1:]
			continue
		}
		now, err := p.current(all, r.Key)
		if err != nil {
			return err
		}
		at := slices.Index(r.States, now.State)
		if at < 0 {
			return &lifecycle.PreconditionError{Precondition: r, Current: now}
		}
		p.require[i] = p.in(r, at)
	}
	if o := p.commit.Owner; o.Name != "" && all[p.life(o)] == nil {
		return &lifecycle.OwnerError{Owner: o}
	}
	return errAgain
}

// written reports whether the commit, of which a record is not as expected, was written before,
// and sets its results as of then. After a lost answer one revision of this plan proves it.
// Otherwise another call, with another time, has written it, and the results need every row: a
// commit with a MetadataOnly change is a conflict.
//
// The expected revision never comes back. So a plan whose answer was lost never will be executed,
// and written forgets the loss, if the place of one of its rows has another row, or no row
// although the record has changed.
func (p *plan) written(all map[string]*mvccpb.KeyValue) (bool, error) {
	byToken, byPlan, never := true, false, false
	for i := range p.changes {
		ch := &p.changes[i]
		now, err := p.current(all, ch.To.Key)
		var row lifecycle.HistoryRow
		if kv := all[ch.row]; kv != nil && err == nil {
			row, err = decode[lifecycle.HistoryRow](kv)
		}
		if err != nil {
			return false, err
		}
		if row.Revision == ch.done.To.Revision || now.Revision == ch.done.To.Revision {
			byPlan = true
		}
		if row.Token == p.commit.Token {
			ch.done.Stamp(row.Revision, row.At)
		} else {
			byToken = false
		}
		changed := now.Revision != ch.Expect || now.State != ch.From
		if !ch.MetadataOnly && (row.Sequence != 0 || changed && now.Sequence < ch.To.Sequence) {
			never = true
		}
	}
	if byToken || p.lost != nil && byPlan {
		return true, nil
	}
	if never {
		p.lost = nil
	}
	return false, nil
}
