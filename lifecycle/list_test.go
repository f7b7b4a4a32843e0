package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// listing is a store that records queries and can fail.
type listing struct {
	*lifecycle.MemoryStore
	queries   []lifecycle.Query
	failAfter int // > 0: that many pages
	between   func()
}

var errList = errors.New("the store cannot be read")

func (s *listing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if s.failAfter > 0 && len(s.queries) == s.failAfter {
		return nil, errList
	}
	if s.between != nil && len(s.queries) > 0 {
		s.between()
	}
	s.queries = append(s.queries, q)
	return s.MemoryStore.List(ctx, q)
}

// listed makes n notes named 0000, 0001 and so on. Beside each of them it makes a note that is
// thrown away, and a lease, neither of which is to be listed.
func listed(t *testing.T, n int) (*lifecycle.Manager[state, event, size], *listing) {
	t.Helper()
	store := &listing{MemoryStore: lifecycle.NewMemoryStore()}
	m := lifecycle.Must(note, store, nil)
	leases := lifecycle.Must(lease, store, nil)
	for i := range n {
		id := fmt.Sprintf("%04d", i)
		add(t, m, id, user, size{N: i})
		add(t, m, id+" gone", user, size{N: i})
		fire(t, m, id+" gone", "throw", user, nil)
		add(t, leases, id, user, size{})
	}
	return m, store
}

func ids(records []lifecycle.Record[state, size]) (list []string) {
	for _, rec := range records {
		list = append(list, rec.ID)
	}
	return list
}

// TestAll: page after page, every object once, in order, and no page more than
// is needed.
func TestAll(t *testing.T) {
	for _, c := range []struct{ objects, limit, pages int }{
		{0, 10, 1}, {1, 10, 1}, {9, 10, 1}, {10, 10, 2}, {11, 10, 2}, {25, 10, 3}, {25, 1, 26}, {25, 0, 1}, {25, -1, 1},
	} {
		t.Run(fmt.Sprintf("%d by %d", c.objects, c.limit), func(t *testing.T) {
			m, store := listed(t, c.objects)
			i := 0
			for rec, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: c.limit}) {
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("%04d", i), rec.ID)
				require.Equal(t, size{N: i}, rec.Payload)
				i++
			}
			require.Equal(t, c.objects, i)
			require.Len(t, store.queries, c.pages)
			for _, q := range store.queries {
				require.Equal(t, "note", q.Machine)
			}
		})
	}
}

// TestAllAgain: every pass over the sequence begins anew.
func TestAllAgain(t *testing.T) {
	m, _ := listed(t, 25)
	seq := m.All(t.Context(), lifecycle.Select[state]{Limit: 10})
	for range 2 {
		n := 0
		for range seq {
			n++
		}
		require.Equal(t, 25, n)
	}
}

// TestAllStops: the caller may stop anywhere, and no page is read afterwards.
func TestAllStops(t *testing.T) {
	m, store := listed(t, 25)
	var seen []string
	for rec := range m.All(t.Context(), lifecycle.Select[state]{Limit: 10, After: "0004"}) {
		seen = append(seen, rec.ID)
		if len(seen) == 10 {
			break
		}
	}
	require.Equal(t, []string{"0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014"}, seen)
	require.Len(t, store.queries, 1)
}

// TestAllFails: an error ends the sequence, with a zero record.
func TestAllFails(t *testing.T) {
	m, store := listed(t, 25)
	store.failAfter = 2
	n, failures := 0, 0
	for rec, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: 10}) {
		if err != nil {
			failures++
			require.ErrorIs(t, err, errList)
			require.EqualError(t, err, "lifecycle: list note: the store cannot be read")
			require.Zero(t, rec)
			continue
		}
		require.Zero(t, failures, "a record after the error")
		n++
	}
	require.Equal(t, 20, n)
	require.Equal(t, 1, failures)
}

// TestAllWhileOthersWork: objects that come, go and change between the pages
// hide none of those that do not.
func TestAllWhileOthersWork(t *testing.T) {
	m, store := listed(t, 25)
	n := 0
	store.between = func() {
		n++
		add(t, m, fmt.Sprintf("0000 new %d", n), user, size{})
		add(t, m, fmt.Sprintf("0024 new %d", n), user, size{})
		fire(t, m, fmt.Sprintf("%04d", n), "throw", user, nil)
		fire(t, m, fmt.Sprintf("%04d", 20+n%5), "edit", user, nil)
	}
	seen := map[string]int{}
	for rec, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: 5}) {
		require.NoError(t, err)
		seen[rec.ID]++
	}
	require.Less(t, n, 9)
	for i := 9; i < 20; i++ {
		require.Equal(t, 1, seen[fmt.Sprintf("%04d", i)], "note %04d", i)
	}
}

// TestListPages: a page has at most Limit records. The default is MaxPage, and more is
// refused, not cut.
func TestListPages(t *testing.T) {
	m, store := listed(t, lifecycle.MaxPage+1)
	for limit, want := range map[int]int{
		0: lifecycle.MaxPage, -1: lifecycle.MaxPage, 7: 7, lifecycle.MaxPage: lifecycle.MaxPage,
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			page, err := m.List(t.Context(), lifecycle.Select[state]{Limit: limit})
			require.NoError(t, err)
			require.Len(t, page, want)
		})
	}
	for _, q := range store.queries {
		require.True(t, q.Limit == 7 || q.Limit == lifecycle.MaxPage, "limit %d", q.Limit)
	}
	tooMany := lifecycle.Select[state]{Limit: lifecycle.MaxPage + 1}
	_, err := m.List(t.Context(), tooMany)
	require.EqualError(t, err, "lifecycle: list note: invalid request: limit 1001, more than 1000")
	for _, err := range m.All(t.Context(), tooMany) {
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	_, err = m.History(t.Context(), "0000", 0, lifecycle.MaxPage+1)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	for _, after := range []string{"\xff", "a\x00", strings.Repeat("a", lifecycle.MaxID+1)} {
		_, err = m.List(t.Context(), lifecycle.Select[state]{After: after})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		_, err = store.MemoryStore.List(t.Context(), lifecycle.Query{Machine: "note", Limit: 1, After: after})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	last, err := m.List(t.Context(), lifecycle.Select[state]{After: "0999"})
	require.NoError(t, err)
	require.Equal(t, []string{"1000"}, ids(last))
}

// TestListPrefix: the ids with a prefix, page after page, and no page of others.
func TestListPrefix(t *testing.T) {
	m, store := listed(t, 25)
	plant(t, store.MemoryStore, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "note", ID: "002"}, State: "Melting"})
	for limit := range 12 {
		store.queries = nil
		var list []string
		for rec, err := range m.All(t.Context(), lifecycle.Select[state]{Prefix: "001", Limit: limit}) {
			require.NoError(t, err, "a record of another prefix cannot be read")
			list = append(list, rec.ID)
		}
		require.Len(t, list, 10)
		require.Equal(t, []string{"0010", "0019"}, []string{list[0], list[9]})
		require.LessOrEqual(t, len(store.queries), 11)
	}
	for prefix, want := range map[string][]string{
		"0003": nil, "5": nil, strings.Repeat("5", lifecycle.MaxID+1): nil, "000": {"0004", "0005"},
	} {
		t.Run(prefix, func(t *testing.T) {
			page, err := m.List(t.Context(), lifecycle.Select[state]{Prefix: prefix, After: "0003", Limit: 2})
			require.NoError(t, err)
			require.Equal(t, want, ids(page))
		})
	}
	_, err := m.List(t.Context(), lifecycle.Select[state]{Prefix: "a\x00"})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// TestListStates: an absent state selects nothing, and an undeclared one is an
// error.
func TestListStates(t *testing.T) {
	m, _ := vms(t)
	ready(t, m, "a")
	updating(t, m, "b")
	create(t, m, "c", "create", user, size{})
	list := func(states ...state) []string {
		page, err := m.List(t.Context(), lifecycle.Select[state]{States: states})
		require.NoError(t, err)
		return ids(page)
	}
	require.Equal(t, []string{"a", "b", "c"}, list())
	require.Equal(t, []string{"a", "c"}, list("Creating", "Ready"))
	require.Equal(t, []string{"b"}, list("Updating", "Updating"))
	require.Empty(t, list("None"))
	require.Empty(t, list("Failed"))

	_, err := m.List(t.Context(), lifecycle.Select[state]{States: []state{"Ready", "Elsewhere"}})
	require.ErrorIs(t, err, fsm.ErrUnknownState)
	require.Equal(t, 400, lifecycle.HTTPStatus(err))
	te, ok := errors.AsType[*fsm.TransitionError](err)
	require.True(t, ok)
	require.Equal(t, "Elsewhere", te.From)
	require.Equal(t, "vm", te.Machine)
	e, ok := errors.AsType[*lifecycle.Error](err)
	require.True(t, ok)
	require.Equal(t, "list", e.Verb)
}

// TestListForeign: a record of another table or payload is named, and does not hide
// the others.
func TestListForeign(t *testing.T) {
	m, store := vms(t)
	for _, id := range []string{"a", "c", "e"} {
		ready(t, m, id)
	}
	plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "vm", ID: "b"}, State: "Melting"})
	foreignPayload(t, store, "d", "Ready")
	named := func(err error, id string) {
		t.Helper()
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		e, ok := errors.AsType[*lifecycle.Error](err)
		require.True(t, ok)
		require.Equal(t, id, e.ID)
	}
	page, err := m.List(t.Context(), lifecycle.Select[state]{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, ids(page))
	require.EqualError(t, page[1].Err, `lifecycle: list vm "b": foreign record: `+
		`fsm: unknown state: vm: in "Melting": not declared`)
	for i, rec := range page {
		if i%2 == 0 {
			require.NoError(t, rec.Err)
			require.Equal(t, state("Ready"), rec.State)
			continue
		}
		named(rec.Err, rec.ID)
		require.Zero(t, rec.Status)
		require.Zero(t, rec.Payload)
	}

	for most := range 7 {
		var all []lifecycle.Record[state, size]
		var failed []error
		for rec, err := range m.All(t.Context(), lifecycle.Select[state]{Limit: most}) {
			if err != nil {
				require.Equal(t, err, rec.Err)
				named(err, rec.ID)
				failed = append(failed, err)
				continue
			}
			all = append(all, rec)
		}
		require.Equal(t, []string{"a", "c", "e"}, ids(all))
		require.Len(t, failed, 2)
		named(failed[0], "b")
		named(failed[1], "d")
	}
}

// TestListByAge: unchanged for so long, and overdue, by the store's clock.
func TestListByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := vms(t)
		updating(t, m, "a") // until 1h
		time.Sleep(30 * time.Minute)
		updating(t, m, "b") // until 1h30m
		ready(t, m, "c")
		time.Sleep(30*time.Minute + 1)
		list := func(sel lifecycle.Select[state]) []string {
			page, err := m.List(t.Context(), sel)
			require.NoError(t, err)
			return ids(page)
		}
		require.Equal(t, []string{"a"}, list(lifecycle.Select[state]{Overdue: true}))
		require.Equal(t, []string{"a"}, list(lifecycle.Select[state]{UnchangedFor: time.Hour}))
		require.Equal(t, []string{"a", "b", "c"}, list(lifecycle.Select[state]{UnchangedFor: 30 * time.Minute}))
		require.Empty(t, list(lifecycle.Select[state]{UnchangedFor: 2 * time.Hour}))
		require.Empty(t, list(lifecycle.Select[state]{Overdue: true, States: []state{"Ready"}}))
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"a", "b"}, list(lifecycle.Select[state]{Overdue: true}))
	})
}

// TestHistoryPages: rows above a number, so many of them, ascending.
func TestHistoryPages(t *testing.T) {
	m, _ := vms(t)
	create(t, m, "a", "import", user, size{})
	for range lifecycle.MaxPage + 10 {
		fire(t, m, "a", "touch", user, nil)
	}
	for _, c := range []struct {
		after            uint64
		max, first, rows int
	}{
		{0, 0, 1, lifecycle.MaxPage},
		{0, -3, 1, lifecycle.MaxPage},
		{0, 3, 1, 3},
		{5, 2, 6, 2},
		{lifecycle.MaxPage, 0, lifecycle.MaxPage + 1, 11},
		{lifecycle.MaxPage + 11, 0, 0, 0},
	} {
		t.Run(fmt.Sprintf("%d after %d", c.max, c.after), func(t *testing.T) {
			rows := rowsOf(t, m, "a", c.after, c.max)
			require.Len(t, rows, c.rows)
			for i, row := range rows {
				require.EqualValues(t, c.first+i, row.Sequence)
			}
		})
	}
	require.Empty(t, rowsOf(t, m, "missing", 0, 0))
}

// undeclared has a history and does not declare it.
type undeclared struct{ *lifecycle.MemoryStore }

func (undeclared) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

// TestHistoryUnsupported: a store without history, or one that declares none,
// returns ErrUnsupported.
func TestHistoryUnsupported(t *testing.T) {
	for _, store := range []lifecycle.Store{
		struct{ lifecycle.Store }{lifecycle.NewMemoryStore()}, undeclared{lifecycle.NewMemoryStore()},
	} {
		m := lifecycle.Must(sizedVM, store, nil)
		_, err := m.History(t.Context(), "a", 0, 0)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.Equal(t, 500, lifecycle.HTTPStatus(err))
		require.EqualError(t, err, `lifecycle: history vm "a": unsupported operation: the store keeps no history`)
	}
}
