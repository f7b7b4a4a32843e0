package lock

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (m *model) try() {
	r := m.request()
	h, err := m.tree.Try(r.Path, r.Mode)
	if others, _ := m.blockers([]Request{r}, nil, nil); len(others) > 0 {
		require.ErrorIs(m, err, ErrConflict)
		require.Zero(m, h)
		return
	}
	require.NoError(m, err)
	i := &item{asked: []Request{r}, rs: []Request{r}, handle: h}
	m.items = append(m.items, i)
	m.grant(i)
}

// conflicts requires a refusal that lists exactly these holders.
func (m *model) conflicts(err, sentinel error, holders []string) {
	require.ErrorIs(m, err, sentinel)
	refusal, ok := errors.AsType[*ConflictError](err)
	require.True(m, ok)
	require.Equal(m, holders, described(refusal.Holders))
	require.False(m, refusal.More)
}

// acquire calls one of the four methods of Locker.
func (m *model) acquire(wait bool) {
	rs := []Request{m.request()}
	single := rapid.Bool().Draw(m.T, "single")
	for !single && len(rs) < 4 && rapid.Bool().Draw(m.T, "another") {
		rs = append(rs, m.request())
	}
	o := &Options{ID: rapid.SampledFrom(modelIDs).Draw(m.T, "id"), Owner: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(m.T, "owner")}
	norm, err := Normalize(rs)
	require.NoError(m, err)

	var own *item
	for _, i := range m.items {
		if o.ID != "" && i.id == o.ID {
			own = i
		}
	}
	if own != nil && rapid.Bool().Draw(m.T, "the same") {
		rs, norm, single = own.asked, own.asked, false
	}
	ctx, cancel := context.WithCancel(m.ctx)
	c := &call{cancel, make(chan outcome, 1)}
	go func() {
		var got outcome
		switch {
		case single && wait:
			got.grant, got.err = m.tree.Lock(ctx, rs[0], o)
		case single:
			got.grant, got.err = m.tree.TryLock(ctx, rs[0], o)
		case wait:
			got.grant, got.err = m.tree.LockAll(ctx, rs, o)
		default:
			got.grant, got.err = m.tree.TryLockAll(ctx, rs, o)
		}
		c.done <- got
	}()

	others, holders := m.blockers(norm, nil, nil)
	waiters := 0
	for _, i := range m.items {
		if i.waiting {
			waiters++
		}
	}
	switch {
	case own != nil && (!slices.Equal(own.asked, norm) || !own.waiting && slices.ContainsFunc(norm, func(r Request) bool {
		return !slices.ContainsFunc(own.rs, func(h Request) bool { return h.Path == r.Path && h.Mode.Covers(r.Mode) })
	})):
		var theirs []string
		for _, r := range own.rs {
			theirs = append(theirs, own.describe(r))
		}
		m.conflicts((<-c.done).err, ErrIDInUse, theirs)
	case own != nil && !own.waiting:
		got := <-c.done
		require.NoError(m, got.err)
		require.Same(m, own.grant, got.grant)
	case own != nil && wait:
		own.calls = append(own.calls, c)
		m.await(own)
		return
	case own != nil:
		_, before := m.blockers(own.rs, own, own)
		m.conflicts((<-c.done).err, ErrConflict, before)
	case len(others) == 0:
		got := <-c.done
		require.NoError(m, got.err)
		i := &item{asked: norm, rs: norm, id: o.ID, owner: o.Owner, grant: got.grant}
		m.items = append(m.items, i)
		m.grant(i)
	case !wait:
		m.conflicts((<-c.done).err, ErrConflict, holders)
	case waiters == modelWaiters:
		m.conflicts((<-c.done).err, ErrQueueFull, holders)
	default:
		i := &item{asked: norm, rs: norm, id: o.ID, owner: o.Owner, waiting: true, calls: []*call{c}}
		m.items = append(m.items, i)
		m.await(i)
		return
	}
	cancel()
}

// await returns when as many calls wait for an item as in the model.
func (m *model) await(i *item) {
	for range 1 << 20 {
		m.tree.mu.Lock()
		there := false
		for e := range m.tree.trie.visit("", scoped(At|Below)) {
			c := e.claim
			if c.state == waiting && c.waiters == len(i.calls) && slices.Equal(c.asked, i.asked) && c.options.ID == i.id {
				there = true
			}
		}
		n := m.tree.waiting
		m.tree.mu.Unlock()
		waiters := 0
		for _, o := range m.items {
			if o.waiting {
				waiters++
			}
		}
		if there && n == waiters {
			return
		}
		select {
		case got := <-i.calls[len(i.calls)-1].done:
			m.Fatalf("did not wait: %v", got.err)
		default:
			runtime.Gosched()
		}
	}
	m.Fatalf("does not wait: %v", i.rs)
}

func (m *model) unlock() {
	if i := m.pick("unlock", isHeld); i != nil {
		require.NoError(m, i.grant.Unlock(m.ctx))
		m.remove(i)
		require.ErrorIs(m, i.grant.Check(), ErrNotHeld)
	}
}

func (m *model) unlockHandle() {
	if i := m.pick("unlock handle", func(i *item) bool { return i.handle.claim != nil }); i != nil {
		require.True(m, i.handle.Unlock())
		m.remove(i)
	}
}

func (m *model) giveUp() {
	i := m.pick("give up", func(i *item) bool { return i.waiting })
	if i == nil {
		return
	}
	_, holders := m.blockers(i.rs, i, i)
	n := rapid.IntRange(0, len(i.calls)-1).Draw(m.T, "call")
	i.calls[n].cancel()
	m.conflicts((<-i.calls[n].done).err, context.Canceled, holders)
	if i.calls = slices.Delete(i.calls, n, n+1); len(i.calls) == 0 {
		m.remove(i)
	}
}

func (m *model) upgrade() {
	i := m.pick("upgrade", isHeld)
	if i == nil {
		return
	}
	to := m.mode()
	rs := slices.Clone(i.rs)
	var raised []Request
	for n := range rs {
		if rs[n].Mode = Join(rs[n].Mode, to); rs[n] != i.rs[n] {
			raised = append(raised, rs[n])
		}
	}
	err := i.grant.Upgrade(m.ctx, to)
	if others, holders := m.blockers(raised, i, nil); i.revoked {
		require.ErrorIs(m, err, ErrRevoked)
	} else if len(others) > 0 {
		m.conflicts(err, ErrConflict, holders)
	} else {
		require.NoError(m, err)
		if !slices.Equal(i.rs, rs) {
			i.rs = rs
			m.grant(i)
		}
	}
}

func (m *model) downgrade() {
	i := m.pick("downgrade", isHeld)
	if i == nil {
		return
	}
	to := m.mode()
	err := i.grant.Downgrade(m.ctx, to)
	switch {
	case i.revoked:
		require.ErrorIs(m, err, ErrRevoked)
	case slices.ContainsFunc(i.rs, func(r Request) bool { return !r.Mode.Covers(to) }):
		require.ErrorIs(m, err, ErrInvalid)
	default:
		require.NoError(m, err)
		i.rs = slices.Clone(i.rs)
		for n := range i.rs {
			i.rs[n].Mode = to
		}
		m.settle()
	}
}

// takeAway revokes or breaks a grant, or a token that is not held.
func (m *model) takeAway() {
	i := m.pick("take away", func(i *item) bool { return !i.waiting })
	if i == nil {
		require.ErrorIs(m, m.tree.Break(m.ctx, m.token, ""), ErrNotHeld)
		require.ErrorIs(m, m.tree.Revoke(m.ctx, m.token+1, ""), ErrNotHeld)
		return
	}
	if rapid.Bool().Draw(m.T, "break") {
		require.NoError(m, m.tree.Break(m.ctx, i.token, "broken"))
		m.remove(i)
		if i.grant != nil {
			require.ErrorIs(m, i.grant.Check(), ErrLost)
		}
		return
	}
	err := m.tree.Revoke(m.ctx, i.token, "revoked")
	if i.grant == nil {
		require.ErrorIs(m, err, ErrInvalid)
		return
	}
	require.NoError(m, err)
	i.revoked = true
	require.ErrorIs(m, i.grant.Check(), ErrRevoked)
}

func (m *model) look() {
	r := m.request()
	s := Scope(rapid.IntRange(1, 7).Draw(m.T, "scope"))
	got, err := m.tree.Holders(m.ctx, r.Path, s)
	require.NoError(m, err)
	var want []string
	for _, i := range m.items {
		for _, o := range i.rs {
			var at Scope
			switch {
			case o.Path == r.Path:
				at = At
			case o.Path.Covers(r.Path):
				at = Above
			case r.Path.Covers(o.Path):
				at = Below
			}
			if at&s != 0 {
				want = append(want, i.describe(o))
			}
		}
	}
	require.Equal(m, want, described(got))
}
