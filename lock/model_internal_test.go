package lock

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTreeAgainstModel makes the same calls on a tree and on a list of acquisitions
// in the order of their arrival. The list has one rule: a request is granted when
// no earlier one conflicts. It takes 10^4 steps, and 10^6 with INTERLOCK_LONG set.
func TestTreeAgainstModel(t *testing.T) {
	const stepsEach = 110
	want := 10_000
	if long {
		want = 1_000_000
	}
	steps := 0
	for steps < want {
		rapid.Check(t, func(rt *rapid.T) {
			m := newModel(rt)
			defer m.end()
			for range stepsEach {
				m.step()
				steps++
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d steps", steps)
}

// item is a present acquisition.
type item struct {
	asked, rs []Request // as first asked for, and as they are
	id, owner string
	waiting   bool
	token     Token
	revoked   bool
	handle    Handle  // of Try
	grant     *Grant  // of all others, once granted
	calls     []*call // that wait for it
}

// call is a Lock under way.
type call struct {
	cancel context.CancelFunc
	done   chan outcome
}

type outcome struct {
	grant *Grant
	err   error
}

const modelWaiters = 5

type model struct {
	*rapid.T
	tree   *Tree
	ctx    context.Context
	cancel context.CancelFunc

	items   []*item // in the order of their arrival
	token   Token
	stale   []Handle
	ended   []*item // with a Grant
	events  chan Granted
	granted []*item // by this step, in order
}

func newModel(t *rapid.T) *model {
	m := &model{T: t, events: make(chan Granted, 1000)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	first := Token(rapid.IntRange(0, 3).Draw(t, "first"))
	m.token = max(first, 1) - 1
	m.tree = Must(&Config{
		FirstToken: first, MaxWaiters: modelWaiters, MaxHolders: 1000,
		Observer: Observer{Granted: func(_ context.Context, g Granted) { m.events <- g }},
	})
	return m
}

func (m *model) end() {
	m.cancel()
	for _, i := range m.items {
		for _, c := range i.calls {
			<-c.done
		}
	}
}

var (
	modelPaths = []string{"/", "/a", "/a/b", "/a/b/c", "/a/b/d", "/ab", "/a-b", "/c/d/e/f", "/c/d/e/g"}
	modelIDs   = []string{"", "", "", "one", "two"}
)

func (m *model) request() Request {
	return Request{MustParse(rapid.SampledFrom(modelPaths).Draw(m.T, "path")), m.mode()}
}

func (m *model) mode() Mode { return rapid.SampledFrom(Modes[:]).Draw(m.T, "mode") }

// blockers returns the requests of other items that conflict with rs: of all items,
// or of those before one.
func (m *model) blockers(rs []Request, own, before *item) (others []*item, holders []string) {
	for _, i := range m.items {
		if i == before {
			break
		}
		if i == own {
			continue
		}
		found := false
		for _, r := range i.rs {
			if slices.ContainsFunc(rs, func(a Request) bool { return conflict(marks(a), marks(r)) }) {
				found = true
				holders = append(holders, i.describe(r))
			}
		}
		if found {
			others = append(others, i)
		}
	}
	return others, holders
}

func (i *item) describe(r Request) string {
	return fmt.Sprint(r, " ", i.token, i.waiting, i.id, i.owner)
}

func described(holders []Holder) (texts []string) {
	for _, h := range holders {
		texts = append(texts, fmt.Sprint(Request{h.Path, h.Mode}, " ", h.Token, h.Waiting, h.ID, h.Owner))
	}
	return texts
}

// settle grants in the model the items without an earlier conflict.
func (m *model) settle() {
	for _, i := range m.items {
		if !i.waiting {
			continue
		}
		if others, _ := m.blockers(i.rs, i, i); len(others) == 0 {
			m.grant(i)
		}
	}
}

func (m *model) grant(i *item) {
	m.token++
	i.waiting, i.token = false, m.token
	m.granted = append(m.granted, i)
}

func (m *model) remove(i *item) {
	m.items = slices.DeleteFunc(m.items, func(o *item) bool { return o == i })
	if i.handle.claim != nil {
		m.stale = append(m.stale, i.handle)
	} else if i.grant != nil {
		m.ended = append(m.ended, i)
	}
	m.settle()
}

// pick returns an item that satisfies a condition, or nil.
func (m *model) pick(label string, ok func(*item) bool) *item {
	var some []*item
	for _, i := range m.items {
		if ok(i) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return rapid.SampledFrom(some).Draw(m.T, label)
}

func isHeld(i *item) bool { return i.grant != nil }

func (m *model) step() {
	m.granted = nil
	switch n := rapid.IntRange(0, 19).Draw(m.T, "step"); {
	case n < 3:
		m.try()
	case n < 6:
		m.acquire(false)
	case n < 10:
		m.acquire(true)
	case n < 13:
		m.unlock()
	case n < 14:
		m.unlockHandle()
	case n < 16:
		m.giveUp()
	case n < 17:
		m.upgrade()
	case n < 18:
		m.downgrade()
	case n < 19:
		m.takeAway()
	default:
		m.look()
	}
	m.compare()
}

// compare requires that the tree equals the model, that the observer saw the
// grants of this step in order, and that stale handles do nothing.
func (m *model) compare() {
	for _, i := range m.granted {
		g := <-m.events
		require.Equal(m, i.token, g.Token)
		require.Equal(m, i.rs, g.Requests)
		for _, c := range i.calls {
			got := <-c.done
			require.NoError(m, got.err)
			require.True(m, i.grant == nil || i.grant == got.grant)
			i.grant = got.grant
			c.cancel()
		}
		i.calls = nil
	}
	require.Empty(m, m.events)

	var want []string
	heldNow, waitingNow := 0, 0
	for _, i := range m.items {
		for _, r := range i.rs {
			want = append(want, i.describe(r))
		}
		if i.waiting {
			waitingNow++
		} else {
			heldNow++
		}
		if i.grant != nil {
			require.Equal(m, i.rs, i.grant.Requests())
			require.Equal(m, i.token, i.grant.Token())
		}
	}
	got, err := m.tree.Snapshot(m.ctx)
	require.NoError(m, err)
	require.Equal(m, want, described(got.Holders))
	require.Equal(m, [2]int{heldNow, waitingNow}, [2]int{got.Held, got.Waiting})
	require.Equal(m, m.token, got.LastToken)
	require.Equal(m, len(m.items) == 0, got.Nodes == 0 && got.Held == 0 && got.Waiting == 0)
	require.Empty(m, checkTree(m.tree))

	for _, h := range m.stale {
		require.False(m, h.Unlock())
		require.Zero(m, h.Token())
	}
	if len(m.stale) > 20 {
		m.stale = m.stale[10:]
	}
	for _, i := range m.ended {
		require.Error(m, i.grant.Check())
		_ = i.grant.Unlock(m.ctx)
		require.Error(m, i.grant.Upgrade(m.ctx, X))
		require.Equal(m, i.rs, i.grant.Requests())
	}
	if len(m.ended) > 10 {
		m.ended = m.ended[5:]
	}
}
