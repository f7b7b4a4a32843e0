package storetest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var requestDemands = []demand{
	{name: "Request/is_unique_in_its_machine", check: requestIsUnique},
	{name: "Request/is_known_after_later_changes", check: requestIsKnown},
	{name: "Request/one_of_many_is_written", check: oneRequestIsWritten},
}

// needsRequests skips a demand if the store keeps no requests.
func (t *tester) needsRequests() lifecycle.Historian {
	t.Helper()
	store := t.needsHistory()
	if _, err := store.Requested(t.Context(), machine, "r"); errors.Is(err, errors.ErrUnsupported) {
		c := commitOf(requested(change(t.get(key("a")), idle), "r"))
		require.ErrorIs(t, send(t.Context(), t.store, c), errors.ErrUnsupported, "a commit with a request, which is not kept")
		t.Skip("skipped: the store keeps no requests")
	}
	return store
}

func requested(ch lifecycle.StoredChange, request string) lifecycle.StoredChange {
	ch.Request, ch.Fingerprint = request, "print of "+request
	return ch
}

// repeats requires that a commit is refused, because a row has its request.
func (t *tester) repeats(c *lifecycle.Commit, row lifecycle.HistoryRow, why string) {
	t.Helper()
	err := send(t.Context(), t.store, c)
	var repeated *lifecycle.RepeatedError
	require.ErrorAs(t, err, &repeated, why)
	equal(t, row, repeated.Row, "the row of the request for "+why)
}

// A commit with a request that another row of the machine has writes nothing, whatever its
// object is. Other machines may have the same request. Requests differ byte by byte.
func requestIsUnique(t *tester) {
	store := t.needsRequests()
	first := commitOf(requested(change(t.get(key("a")), idle), "Request 1"))
	t.commit(first)
	row := first.Changes[0].Row(first.Token)
	t.repeats(commitOf(requested(change(first.Changes[0].To, moving), "Request 1")), row, "the same object")
	t.repeats(commitOf(requested(change(t.get(key("b")), moving), "Request 1")), row, "another object")
	t.unchanged("commits that were refused", first.Changes[0].To)
	t.absent(key("b"))
	if t.has.Changes >= 2 {
		t.repeats(commitOf(change(t.get(key("b")), moving), requested(change(t.get(key("c")), moving), "Request 1")), row, "a transaction")
		t.absent(key("b"))
	}
	truck := t.get(lifecycle.Key{Machine: "truck", ID: "a"})
	t.commit(commitOf(requested(change(truck, idle), "Request 1")))
	t.commit(commitOf(requested(change(t.get(key("b")), idle), "request 1")))
	none, err := store.Requested(t.Context(), machine, "Request 2")
	require.NoError(t, err)
	equal(t, lifecycle.HistoryRow{}, none, "the row of a request that was never made")
}

// A request is known after later changes and the removal of its object, and its own commit
// may be sent again.
func requestIsKnown(t *tester) {
	store := t.needsRequests()
	s := t.sent(commitOf(requested(change(t.get(key("a")), idle), "r")))
	row := s.filled.Changes[0].Row(s.filled.Token)
	check := func(after string) {
		t.Helper()
		got, err := store.Requested(t.Context(), machine, "r")
		require.NoError(t, err)
		equal(t, row, got, "the row of the request after "+after)
		t.repeat(s, after)
	}
	check("its commit")
	r := t.move(t.get(key("a")), moving)
	check("a later change")
	t.remove(r)
	check("the removal")
}

// Of simultaneous commits with one request, about different objects, one is written.
func oneRequestIsWritten(t *tester) {
	t.needsRequests()
	for round := range 5 {
		var commits []*lifecycle.Commit
		for i := range 8 {
			absent := t.get(key(fmt.Sprint("object ", round, i)))
			commits = append(commits, commitOf(requested(change(absent, idle), fmt.Sprint("r", round))))
		}
		require.Equal(t, 1, t.race(lifecycle.ErrRepeated, commits...), "commits that were written")
	}
}
