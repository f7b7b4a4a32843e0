package etcdstore

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// perRequest is the most keys of one range that one request reads, where their order permits
// pages.
const perRequest = 1000

// listing is one call of List.
type listing struct {
	*Store
	q    lifecycle.Query
	now  time.Time
	page []lifecycle.StoredRecord
}

// List implements [lifecycle.Store]. Ids are in bytewise order. Ages and deadlines are
// compared with the clock of this process. A page is not as of one moment.
func (s *Store) List(ctx context.Context, q lifecycle.Query) (page []lifecycle.StoredRecord, err error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if err := checkNames(q.Machine); err != nil {
		return nil, err
	}
	l := &listing{Store: s, q: q, now: s.config.Clock()}
	err = s.call(ctx, func() error {
		switch {
		case q.Overdue:
			return l.byEntries(ctx, [2]string{s.key(deadlines, q.Machine, ""), s.key(deadlines, q.Machine, hex(uint64(l.now.UnixMicro())))})
		case q.NotOwnedBy != nil:
			return l.byEntries(ctx, l.gaps()...)
		case len(q.States) > 0 && len(q.States) <= s.config.MaxTxnOps:
			return l.byStates(ctx)
		}
		return l.byID(ctx)
	})
	if err != nil {
		return nil, err
	}
	return l.page, nil
}

// add adds records that match to the page, until it is full.
func (l *listing) add(kvs ...*mvccpb.KeyValue) error {
	for _, kv := range kvs {
		r, err := decodeRecord(kv)
		if err != nil {
			return err
		}
		if len(l.page) == l.q.Limit || !l.q.Selects(&r, l.now) {
			continue
		}
		if l.q.WithoutPayload {
			r.Payload, r.Saved, r.Args = nil, nil, nil
		}
		l.page = append(l.page, r)
	}
	return nil
}

// byID reads the records of the machine in order.
func (l *listing) byID(ctx context.Context) error {
	all := l.key(records, l.q.Machine, "")
	for kv, err := range l.each(ctx, all+l.q.After+separator, end(all), min(l.q.Limit, perRequest)) {
		if err == nil {
			err = l.add(kv)
		}
		if err != nil || len(l.page) == l.q.Limit {
			return err
		}
	}
	return nil
}

// byStates reads the entries of the states, each in order of the ids, and the records of
// those that match. The first entries of all states are read as of one moment: an object
// that moves from one state to another is in one of them.
func (l *listing) byStates(ctx context.Context) error {
	names := slices.Compact(slices.Sorted(slices.Values(l.q.States)))
	names = slices.DeleteFunc(names, func(state string) bool { return state == "" || checkNames(state) != nil })
	for after, more := l.q.After, len(names) > 0; more && len(l.page) < l.q.Limit; {
		var gets []clientv3.Op
		for _, state := range names {
			start := l.key(states, l.q.Machine, state, "")
			gets = append(gets, page(start+after+separator, end(start), min(l.q.Limit, perRequest)))
		}
		resp, err := l.read(ctx, gets...)
		if err != nil {
			return err
		}
		var ids []string
		bound := ""  // up to this id, the entries of all states were read
		more = false // there are entries beyond
		for i, r := range resp.Responses {
			entries := r.GetResponseRange()
			for _, kv := range entries.Kvs {
				if f, ok := parse(lifecycle.Revision(kv.Value)); ok && l.q.Selects(f.record(names[i]), l.now) {
					ids = append(ids, idOf(kv))
				}
			}
			if !entries.More {
				continue
			}
			if id := idOf(entries.Kvs[len(entries.Kvs)-1]); !more || id < bound {
				bound, more = id, true
			}
		}
		slices.Sort(ids)
		if more {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id > bound })
		}
		if err := l.fetch(ctx, ids); err != nil {
			return err
		}
		after = bound
	}
	return nil
}

// byEntries reads all entries in ranges, which are not in order of the ids, and the records
// of the first ids.
func (l *listing) byEntries(ctx context.Context, ranges ...[2]string) error {
	var gets []clientv3.Op
	for _, r := range ranges {
		gets = append(gets, clientv3.OpGet(r[0], clientv3.WithRange(r[1]), clientv3.WithKeysOnly()))
	}
	kvs, err := l.keys(ctx, gets...)
	if err != nil {
		return err
	}
	var ids []string
	for _, kv := range kvs {
		if id := idOf(kv); id > l.q.After {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return l.fetch(ctx, ids)
}

// fetch reads the records of ids, which are in order, until the page is full. An object
// that has changed since is judged as it is now.
func (l *listing) fetch(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(ids, min(l.config.MaxTxnOps, l.q.Limit)) {
		var gets []clientv3.Op
		for _, id := range some {
			gets = append(gets, clientv3.OpGet(l.key(records, l.q.Machine, id)))
		}
		kvs, err := l.keys(ctx, gets...)
		if err == nil {
			err = l.add(kvs...)
		}
		if err != nil || len(l.page) == l.q.Limit {
			return err
		}
	}
	return nil
}

// gaps returns the ranges between the entries of the owners that the query names. They are
// read as of one moment: an object that goes from one owner to another is in one of them.
// If they do not fit into one transaction, all entries are one range.
func (l *listing) gaps() [][2]string {
	all := l.key(owners, l.q.Machine, "")
	whole := [][2]string{{all, end(all)}}
	if len(l.q.NotOwnedBy) >= l.config.MaxTxnOps {
		return whole
	}
	var named []string
	for _, o := range l.q.NotOwnedBy {
		named = append(named, l.key(owners, l.q.Machine, o.Name, hex(o.Epoch), ""))
	}
	slices.Sort(named)
	gaps := whole
	for _, start := range slices.Compact(named) {
		gaps[len(gaps)-1][1] = start
		gaps = append(gaps, [2]string{end(start), end(all)})
	}
	return gaps
}
