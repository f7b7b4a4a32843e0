package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// plan is a commit as the operations of one transaction. Every attempt writes the same
// records and rows: one that is executed late has the effect that was reported.
type plan struct {
	*Store
	commit  *lifecycle.Commit
	changes []change
	compare []clientv3.Cmp // of the changes and the owner
	write   []clientv3.Op
	look    []clientv3.Op  // gets that show why a transaction was refused
	require []clientv3.Cmp // of each precondition, for one of its states

	lost error // the last error after which etcd may have executed the transaction
}

// change is one change of a plan.
type change struct {
	*lifecycle.StoredChange
	done lifecycle.StoredChange // as it is after the commit
	row  string                 // the key of its history row
}

// Commit implements [lifecycle.Store]. The whole commit is one transaction. If the answer
// is lost, the store searches the history for the commit, and sends it again with the same
// token, three times at most.
//
// Errors, in addition to those of the interface: [lifecycle.ErrInvalid] for names that are
// not UTF-8 without NUL, and for a commit above the --max-request-bytes of etcd, 1.5 MiB
// by default; [errors.ErrUnsupported] for more messages than fit into the transaction. In
// a Reason, and in topics and keys of messages, U+FFFD replaces what is not UTF-8.
func (s *Store) Commit(ctx context.Context, c *lifecycle.Commit) error {
	p, err := s.plan(c)
	if err != nil {
		return err
	}
	return s.call(ctx, func() error {
		if err := p.begin(ctx); err != nil {
			return err
		}
		for tries, lost := 0, 0; ; tries++ {
			err := p.attempt(ctx)
			if p.lost != nil {
				lost++
			}
			switch {
			case err == nil:
				for _, ch := range p.changes {
					ch.To = ch.done.To
				}
				return nil
			case errors.Is(err, errAgain) && tries < mostTries && lost < mostLost && ctx.Err() == nil:
				continue
			case p.lost != nil:
				return p.unknown(ctx)
			case errors.Is(err, errAgain):
				return failed(ctx, err)
			}
			return err
		}
	})
}

// guarded is the driver of a grant of a lock in the same etcd, see [lock.GrantDriver]. The
// comparison holds exactly while the grant does.
type guarded interface{ GuardCompare() clientv3.Cmp }

// plan checks a commit and computes its operations.
func (s *Store) plan(c *lifecycle.Commit) (*plan, error) {
	if err := c.Check(s.Capabilities()); err != nil {
		return nil, err
	}
	p := &plan{Store: s, commit: c, changes: make([]change, len(c.Changes))}
	p.look = []clientv3.Op{clientv3.OpGet(s.key(versions))}
	now := s.config.Clock().UTC().Truncate(time.Microsecond)
	for i := range c.Changes {
		if err := p.add(i, now); err != nil {
			return nil, err
		}
	}
	for _, r := range c.Require {
		if r.Grant != nil {
			driver, ok := r.Grant.Driver().(guarded)
			if !ok {
				return nil, fmt.Errorf("%w: the grant with token %v is not of a lock in etcd", errors.ErrUnsupported, r.Grant.Token())
			}
			guard := driver.GuardCompare()
			p.require = append(p.require, guard)
			p.look = append(p.look, clientv3.OpTxn([]clientv3.Cmp{guard}, nil, nil))
			continue
		}
		if err := checkKey(r.Key); err != nil {
			return nil, err
		}
		p.require = append(p.require, p.in(r, 0))
		p.look = append(p.look, s.gets(r.Key)...)
	}
	if c.Owner.Name != "" {
		if err := checkNames(c.Owner.Name); err != nil {
			return nil, err
		}
		p.compare = append(p.compare, exists(s.life(c.Owner)))
		p.look = append(p.look, clientv3.OpGet(s.life(c.Owner)))
	}
	n := len(p.write) + len(c.Messages)
	if n > s.config.MaxTxnOps || len(c.Messages) > mostMessages {
		return nil, fmt.Errorf("%w: %d operations in one transaction, at most %d, and %d messages, at most %d",
			errors.ErrUnsupported, n, s.config.MaxTxnOps, len(c.Messages), mostMessages)
	}
	return p, nil
}

// add adds the operations of a change.
func (p *plan) add(i int, now time.Time) error {
	ch := &p.commit.Changes[i]
	to := &ch.To
	if err := checkKey(to.Key); err != nil {
		return err
	}
	err := checkNames(to.State, ch.From, to.Origin, ch.FromOrigin, to.Target, to.Version, to.Owner, to.Work,
		string(to.Actor), to.Event, ch.Request, ch.Fingerprint)
	if err != nil {
		return err
	}
	done := *ch
	done.Stamp("", now)
	result := done.Result()
	f := factsOf(&result, p.commit.Token)
	result.Revision, done.To.Revision = f.revision(), f.revision()
	key := func(kind string) string { return p.key(kind, to.Machine, to.ID) }
	p.changes[i] = change{ch, done, p.key(histories, to.Machine, to.ID, hex(to.Sequence))}

	// One comparison covers revision and state: the entry of the state has the revision,
	// and a revision is that of one commit.
	suffix, created := strings.CutPrefix(string(ch.Expect), string(never))
	created = created && ch.From == ""
	if created {
		same := clientv3.Compare(clientv3.Value(p.key(versions)), "=", layout+suffix)
		p.compare = append(p.compare, missing(key(records)), missing(key(removed)), same)
	} else {
		entry := p.key(states, to.Machine, ch.From, to.ID)
		p.compare = append(p.compare, clientv3.Compare(clientv3.Value(entry), "=", string(ch.Expect)))
	}
	p.look = append(append(p.look, p.gets(to.Key)...), clientv3.OpGet(p.changes[i].row))

	into, from := records, removed
	if ch.Remove {
		into, from = removed, records
	}
	if ch.Remove || ch.From == "" && !created {
		p.write = append(p.write, clientv3.OpDelete(key(from)))
	}
	if err := p.put(key(into), record(result)); err != nil {
		return err
	}
	p.index(ch, &result, &f)
	if ch.MetadataOnly {
		return nil
	}
	row := done.Row(p.commit.Token)
	if ch.Request != "" {
		request := p.key(requests, to.Machine, ch.Request)
		p.compare = append(p.compare, missing(request))
		p.look = append(p.look, clientv3.OpGet(request))
		if err := p.put(request, row); err != nil {
			return err
		}
	}
	return p.put(p.changes[i].row, row)
}

// put adds the write of a value. The error is [lifecycle.ErrInvalid].
func (p *plan) put(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%w: encode: %w", lifecycle.ErrInvalid, err)
	}
	p.write = append(p.write, clientv3.OpPut(key, string(text)))
	return nil
}

// index adds the operations that replace the index entries of a record. If the expected
// revision is none, the comparison fails and nothing is written.
func (p *plan) index(ch *lifecycle.StoredChange, result *lifecycle.StoredRecord, f *facts) {
	entries, before := p.entries(result.Key, result.State, f, result.Sequence), map[string]string{}
	if old, ok := parse(ch.Expect); ok {
		before = p.entries(result.Key, ch.From, &old, 0)
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := entries[key]; !kept {
			p.write = append(p.write, clientv3.OpDelete(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, kept := before[key]; !kept || entries[key] != "" {
			p.write = append(p.write, clientv3.OpPut(key, entries[key]))
		}
	}
}

// begin reads the revision of etcd if the commit has messages, and adds them. A commit that
// begins after another one was acknowledged reads a higher revision, and its messages come
// later.
func (p *plan) begin(ctx context.Context) error {
	if len(p.commit.Messages) == 0 {
		return nil
	}
	resp, err := p.read(ctx, clientv3.OpGet(p.key(versions)))
	if err != nil {
		return err
	}
	n, err := floor(string(found(resp)[p.key(versions)].GetValue()))
	begun := hex(uint64(resp.Header.Revision) + n)
	for i, m := range p.commit.Messages {
		key := p.key(messages, begun, hex(n), p.commit.Token.String(), hex(uint64(i)))
		err = errors.Join(err, p.put(key, message(m)))
	}
	return err
}

// in compares the state of an object with one of those that a precondition permits.
func (p *plan) in(r lifecycle.Precondition, state int) clientv3.Cmp {
	record := p.key(records, r.Machine, r.ID)
	switch {
	case len(r.States) == 0: // holds for no object
		return clientv3.Compare(clientv3.CreateRevision(record), "<", 0)
	case r.States[state] == "":
		return missing(record)
	}
	return exists(p.key(states, r.Machine, r.States[state], r.ID))
}

// attempt sends the commit once. nil: it was written. [errAgain]: it was not, and can be
// sent again.
func (p *plan) attempt(ctx context.Context) error {
	within, stop := context.WithTimeout(ctx, p.config.Timeout)
	defer stop()
	if err := p.ready(within); err != nil {
		return failed(ctx, err)
	}
	resp, err := p.client.Txn(within).If(slices.Concat(p.compare, p.require)...).Then(p.write...).Else(p.look...).Commit()
	switch {
	case err == nil && resp.Succeeded:
		return nil
	case err == nil:
		return p.verdict(resp)
	case refused(err):
		return failed(ctx, err)
	}
	earlier := p.lost
	p.lost = err
	// The caller's context does not end the search: it may be the reason of the loss.
	search, stop := context.WithTimeout(context.WithoutCancel(ctx), searchFor)
	defer stop()
	resp, failure := p.read(search, p.look...)
	if failure != nil {
		return err
	}
	verdict := p.verdict(resp)
	if errors.Is(err, rpctypes.ErrNoSpace) { // an answer: the transaction is not executed later
		p.lost = earlier
		if errors.Is(verdict, errAgain) {
			return failed(ctx, err)
		}
	}
	return verdict
}

// searchFor bounds the search for a commit whose answer was lost.
const searchFor = time.Second
