package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// oneKind keeps the objects of several machines, which the conformance suite uses, in a
// user's table for one machine: the ids get a prefix of the machine. Ids of the machine
// crane keep their full length and get no prefix. Owners stay in the library's own tables.
type oneKind struct{ *sqlstore.Store }

const (
	kind   = "thing" // the machine of the table
	plain  = "crane"
	owners = "interlock.owner"
	mark   = "\x01" // begins the ids of all others, and no id of the suite
)

var (
	kindsMu sync.Mutex
	kinds   = map[string]string{plain: ""}
)

// before returns the prefix of the ids of a machine.
func before(machine string) string {
	kindsMu.Lock()
	defer kindsMu.Unlock()
	prefix, ok := kinds[machine]
	if !ok {
		prefix = fmt.Sprint(mark, len(kinds), "/")
		kinds[machine] = prefix
	}
	return prefix
}

func inside(key lifecycle.Key) lifecycle.Key {
	if key.Machine == owners {
		return key
	}
	if key.Machine == "" || key.ID == "" {
		return lifecycle.Key{Machine: kind}
	}
	return lifecycle.Key{Machine: kind, ID: before(key.Machine) + key.ID}
}

func (o oneKind) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := o.Store.Get(ctx, inside(key))
	if err == nil {
		r.Key = key
	}
	return r, err
}

func (o oneKind) Commit(ctx context.Context, c *lifecycle.Commit) error {
	sent := *c
	sent.Changes = append([]lifecycle.StoredChange(nil), c.Changes...)
	sent.Require = append([]lifecycle.Precondition(nil), c.Require...)
	for i := range sent.Changes {
		ch := &sent.Changes[i]
		ch.To.Key = inside(c.Changes[i].To.Key)
		if ch.Request != "" && ch.To.Machine == kind {
			ch.Request = before(c.Changes[i].To.Machine) + ch.Request
		}
	}
	for i := range sent.Require {
		sent.Require[i].Key = inside(c.Require[i].Key)
	}
	err := o.Store.Commit(ctx, &sent)
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		conflict.Current.Key = c.Changes[conflict.Change].To.Key
	}
	if unmet, ok := errors.AsType[*lifecycle.PreconditionError](err); ok {
		for i := range sent.Require {
			if sent.Require[i].Key == unmet.Precondition.Key {
				unmet.Precondition.Key, unmet.Current.Key = c.Require[i].Key, c.Require[i].Key
				break
			}
		}
	}
	if repeated, ok := errors.AsType[*lifecycle.RepeatedError](err); ok {
		repeated.Row = outside(repeated.Row)
	}
	if err == nil {
		for i := range c.Changes {
			to, filled := &c.Changes[i].To, &sent.Changes[i].To
			to.Revision, to.ChangedAt, to.Deadline = filled.Revision, filled.ChangedAt, filled.Deadline
		}
	}
	return err
}

func (o oneKind) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if q.Machine == owners {
		return o.Store.List(ctx, q)
	}
	prefix, in := before(q.Machine), q
	in.Machine, in.After = kind, prefix+q.After
	if prefix == "" && q.After < "\x02" {
		in.After = mark + "\U0010ffff" // after all others
	}
	list, err := o.Store.List(ctx, in)
	for i := range list {
		if !strings.HasPrefix(list[i].ID, prefix) {
			return list[:i], err
		}
		list[i].Key = lifecycle.Key{Machine: q.Machine, ID: strings.TrimPrefix(list[i].ID, prefix)}
	}
	return list, err
}

func (o oneKind) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	list, err := o.Store.History(ctx, inside(key), after, limit)
	for i := range list {
		list[i] = outside(list[i])
	}
	return list, err
}

func (o oneKind) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	if machine == owners {
		return o.Store.Requested(ctx, machine, request)
	}
	row, err := o.Store.Requested(ctx, kind, before(machine)+request)
	return outside(row), err
}

// outside returns a history row with the key and the request as the suite knows them.
func outside(row lifecycle.HistoryRow) lifecycle.HistoryRow {
	if row.Machine != kind {
		return row
	}
	row.Machine = plain
	kindsMu.Lock()
	defer kindsMu.Unlock()
	for machine, prefix := range kinds {
		if prefix != "" && strings.HasPrefix(row.ID, prefix) {
			row.Machine, row.ID, row.Request = machine, strings.TrimPrefix(row.ID, prefix), strings.TrimPrefix(row.Request, prefix)
		}
	}
	return row
}

func (o oneKind) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	prefix := before(machine)
	from := prefix + after
	if prefix == "" && after < "\x02" {
		from = mark + "\U0010ffff" // after all others
	}
	list, err := o.Store.Recent(ctx, kind, within, from, limit)
	for i := range list {
		if !strings.HasPrefix(list[i].ID, prefix) {
			return list[:i], err
		}
		list[i].ID = strings.TrimPrefix(list[i].ID, prefix)
	}
	return list, err
}
