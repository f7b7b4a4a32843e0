package etcdlock

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// A tree has these keys, below its prefix. All but the first are on the lease of a
// session, and end with it.
//
//	tree        written by every request; its revision is that of the latest one
//	<lease>     a session; written again to make late transactions fail
//	<lease>/<n> a claim: one acquisition of the session, held or waiting
const treeKey = "tree"

// record is the value of a claim's key.
type record struct {
	Requests []lock.Request `json:"requests"`
	Asked    []lock.Request `json:"asked"` // an id stands for these; conversions do not change them
	ID       string         `json:"id,omitempty"`
	Owner    string         `json:"owner,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Since    time.Time      `json:"since"`
	// Token is set by writes that keep the token. 0: it follows from the revision of
	// the value, and from the rank among the values of that revision.
	Token lock.Token `json:"token,omitempty"`
	Rank  int        `json:"rank,omitempty"`
	Order *order     `json:"order,omitempty"` // that the holder has not obeyed yet
}

// order is the request of an operator to the holder of a claim.
type order struct {
	Break  bool   `json:"break,omitempty"` // otherwise Revoke
	Reason string `json:"reason,omitempty"`
}

// claim is one acquisition as etcd keeps it. It never changes.
type claim struct {
	record
	key      string
	lease    clientv3.LeaseID
	arrival  int64 // the revision that created the key
	modified int64 // the revision that wrote the value
}

// ranks is how many tokens there are for a revision.
const ranks = 1 << 16

func (c *claim) token() lock.Token {
	return cmp.Or(c.Token, lock.Token(c.modified*ranks)+lock.Token(c.Rank))
}

// conflicts reports whether a claim cannot be held together with another one that has the
// request. Two claims with the same id conflict as a whole.
func (c *claim) conflicts(other *claim, r lock.Request) bool {
	return c.ID != "" && c.ID == other.ID || slices.ContainsFunc(c.Requests, r.Conflicts)
}

// view is the content of a tree at one revision. It never changes once it is shared.
//
//	a claim is held at a revision  <=>  no claim that arrived earlier conflicts with it
//
// A claim that is held stays so until its key is deleted: later claims arrive behind
// it, and an upgrade is written only if it conflicts with no claim.
type view struct {
	prefix   string
	revision int64            // all changes up to this one are in the view
	latest   int64            // the revision of the tree's key
	sessions map[string]int64 // the revision of each session's key
	claims   []*claim         // in the order of arrival
}

// newView returns the content of the keys in the answer of a range.
func newView(prefix string, revision int64, kvs []*mvccpb.KeyValue) *view {
	v := &view{prefix: prefix, revision: revision, sessions: map[string]int64{}}
	for _, kv := range kvs {
		v.put(kv)
	}
	return v
}

// after returns the view after the events. It skips those that it has already.
func (v *view) after(events []*clientv3.Event) *view {
	next := *v
	next.sessions, next.claims = maps.Clone(v.sessions), slices.Clone(v.claims)
	for _, e := range events {
		if e.Kv.ModRevision <= v.revision {
			continue
		}
		if next.revision = e.Kv.ModRevision; e.Type == clientv3.EventTypePut {
			next.put(e.Kv)
		} else {
			next.remove(string(e.Kv.Key))
		}
	}
	return &next
}

func (v *view) put(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	name := strings.TrimPrefix(key, v.prefix)
	switch {
	case name == treeKey:
		v.latest = kv.ModRevision
		return
	case !strings.Contains(name, "/"):
		v.sessions[key] = kv.ModRevision
		return
	}
	c := &claim{key: key, lease: clientv3.LeaseID(kv.Lease), arrival: kv.CreateRevision, modified: kv.ModRevision}
	invalid := func(r lock.Request) bool { return r.Validate() != nil }
	if json.Unmarshal(kv.Value, &c.record) != nil || len(c.Requests) == 0 || slices.ContainsFunc(c.Requests, invalid) {
		// Another program or version wrote it. It may lock anything.
		c.record = record{Requests: []lock.Request{{Path: lock.Root(), Mode: lock.X}}, Reason: "the value cannot be read"}
	}
	v.remove(key)
	i, _ := slices.BinarySearchFunc(v.claims, c.arrival, func(c *claim, n int64) int { return cmp.Compare(c.arrival, n) })
	v.claims = slices.Insert(v.claims, i, c)
}

func (v *view) remove(key string) {
	delete(v.sessions, key)
	v.claims = slices.DeleteFunc(v.claims, func(c *claim) bool { return c.key == key })
}

// find returns the claim that satisfies a condition, and nil if none does.
func (v *view) find(is func(*claim) bool) *claim {
	if i := slices.IndexFunc(v.claims, is); i >= 0 {
		return v.claims[i]
	}
	return nil
}

// claim returns the claim with a key, and nil if there is none.
func (v *view) claim(key string) *claim { return v.find(func(c *claim) bool { return c.key == key }) }

// never is the arrival of a claim that has not arrived: later than every other one.
const never = math.MaxInt64

// blockers returns the requests of claims that arrived before a claim and conflict with it.
func (v *view) blockers(of *claim) iter.Seq2[*claim, lock.Request] {
	return func(yield func(*claim, lock.Request) bool) {
		for _, c := range v.claims {
			if c.arrival >= of.arrival {
				return
			}
			for _, r := range c.Requests {
				if c.key != of.key && of.conflicts(c, r) && !yield(c, r) {
					return
				}
			}
		}
	}
}

// free reports whether a claim has no blockers. A claim that has arrived is held then.
func (v *view) free(c *claim) bool {
	for range v.blockers(c) {
		return false
	}
	return true
}

// waiting returns the number of claims that wait and arrived before a revision.
func (v *view) waiting(before int64) (n int) {
	for _, c := range v.claims {
		if c.arrival < before && !v.free(c) {
			n++
		}
	}
	return n
}

// renumbered returns a claim that is upgraded, and behind it those that wait for it, because
// of another request of its list, or for one of those. They get new ranks: their tokens
// follow that of the upgrade, in the order of their arrival.
//
// Each of them still waits when they are written: the transaction compares the keys of all.
// Bad schedule if other claims were among them: one is granted between the view and the
// transaction, and the token of a grant changes.
func (v *view) renumbered(upgraded *claim) []*claim {
	list := []*claim{upgraded}
	for _, c := range v.claims {
		behind := func(earlier *claim) bool {
			return slices.ContainsFunc(earlier.Requests, func(r lock.Request) bool { return c.conflicts(earlier, r) })
		}
		if c.arrival > upgraded.arrival && slices.ContainsFunc(list, behind) {
			next := *c
			next.Token, next.Rank = 0, len(list)
			list = append(list, &next)
		}
	}
	return list
}

// holder describes a request of a claim.
func (v *view) holder(c *claim, r lock.Request) lock.Holder {
	h := lock.Holder{
		Path: r.Path, Mode: r.Mode, ID: c.ID, Owner: c.Owner, Reason: c.Reason, Since: c.Since,
		Waiting: !v.free(c),
	}
	if !h.Waiting {
		h.Token = c.token()
	}
	return h
}

// holders describes the requests that satisfy a condition, in the order of arrival.
func (v *view) holders(is func(lock.Request) bool) (list []lock.Holder) {
	for _, c := range v.claims {
		for _, r := range c.Requests {
			if is(r) {
				list = append(list, v.holder(c, r))
			}
		}
	}
	return list
}

// refusal refuses a claim. It lists the holders that arrived before it, up to a limit, or
// those with the id if that is in use.
func (v *view) refusal(of *claim, limit int, why error) *lock.ConflictError {
	e := &lock.ConflictError{Requests: slices.Clone(of.Requests), Err: why}
	if why == lock.ErrIDInUse {
		of = &claim{record: record{ID: of.ID}, arrival: of.arrival}
	}
	for c, r := range v.blockers(of) {
		if e.More = len(e.Holders) == limit; e.More {
			break
		}
		e.Holders = append(e.Holders, v.holder(c, r))
	}
	return e
}
