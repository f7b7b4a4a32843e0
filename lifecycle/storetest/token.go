package storetest

import (
	"github.com/interlock-go/interlock/lifecycle"
)

func tokenDemands() []demand {
	return []demand{
		{
			name: "Token/same_commit_again_is_written_once", run: sameCommitAgain,
			says: "A commit that is sent again is no error, is filled as the first time, and is not written again.",
		},
		{
			name: "Token/holds_after_the_object_moved_on", run: tokenAfterMoves, needs: needHistory,
			says: "So it is while the history has it, also after the object moved on.",
		},
		{
			name: "Token/holds_after_removal", run: tokenAfterRemoval, needs: needHistory,
			says: "So it is for the removal of an object, and after it.",
		},
		{
			name: "Token/covers_all_changes", run: tokenOfBatch, changes: 3,
			says: "A commit of several changes that is sent again is filled in all of them, and none is written again.",
		},
		{
			name: "Token/precedes_preconditions", run: tokenPrecedesPreconditions, changes: 2,
			says: "A commit that was written is not asked for its preconditions again.",
		},
		{
			name: "Token/another_token_is_another_commit", run: anotherToken,
			says: "The same changes under another token are a conflict.",
		},
	}
}

// repeat sends a commit again, as it was sent first, and demands that it is
// answered as it was answered first.
func (t *trial) repeat(sent, filled *lifecycle.Commit, when string) {
	t.Helper()
	twin := again(sent)
	if err := send(t.Context(), t.store, twin); err != nil {
		t.Errorf("a commit sent again %s is no error, it is: %v", when, err)
		return
	}
	for i := range twin.Changes {
		same(t, "a commit sent again "+when, twin.Changes[i].To, filled.Changes[i].To)
	}
}

// sent commits a copy and returns it: as it was sent, and as it was filled.
func (t *trial) sent(c *lifecycle.Commit) (sent, filled *lifecycle.Commit) {
	t.Helper()
	filled = again(c)
	t.commit(filled)
	return c, filled
}

func sameCommitAgain(t *trial) {
	r := t.get(key("a"))
	for _, state := range []string{idle, moving, moving} {
		ch := change(r, state)
		ch.Timeout = hour
		sent, filled := t.sent(commitOf(ch))
		for range 2 {
			t.repeat(sent, filled, "at once")
			t.stays("a commit sent again", filled.Changes[0].To)
		}
		// What was filled may be sent as well.
		t.repeat(filled, filled, "as it was filled")
		r = t.get(r.Key)
	}
}

func tokenAfterMoves(t *trial) {
	type pair struct{ sent, filled *lifecycle.Commit }
	var all []pair
	r := t.get(key("a"))
	for i := range kept - 1 {
		sent, filled := t.sent(commitOf(change(r, []string{idle, moving}[i%2])))
		all = append(all, pair{sent, filled})
		r = filled.Changes[0].To
	}
	for _, p := range all {
		t.repeat(p.sent, p.filled, "after the object moved on")
	}
	t.stays("earlier commits sent again", r)
}

func tokenAfterRemoval(t *trial) {
	made, madeFilled := t.sent(commitOf(change(t.get(key("a")), idle)))
	removed, removedFilled := t.sent(commitOf(removal(madeFilled.Changes[0].To)))
	left := t.get(key("a"))
	t.repeat(removed, removedFilled, "to remove what is removed")
	t.repeat(made, madeFilled, "to make what was removed since")
	t.stays("a removal sent again", left)
	now := t.move(left, moving)
	t.repeat(removed, removedFilled, "to remove what was made again")
	t.repeat(made, madeFilled, "to make what was made again")
	t.stays("a removal sent again", now)
}

func tokenOfBatch(t *trial) {
	a, c := t.get(key("a")), t.put(key("c"), idle)
	b := t.put(key("b"), idle)
	ch := change(b, moving)
	ch.Timeout = hour
	sent, filled := t.sent(commitOf(change(a, idle), ch, removal(c)))
	t.repeat(sent, filled, "at once")
	t.stays("a commit of several changes sent again", filled.Changes[0].To, filled.Changes[1].To)
	if !t.store.Capabilities().History {
		return
	}
	// One of them moves on; the others are as the commit left them.
	a = t.move(filled.Changes[0].To, broken)
	t.repeat(sent, filled, "after the first object moved on")
	b = t.move(filled.Changes[1].To, broken)
	t.repeat(sent, filled, "after the second object moved on")
	t.stays("a commit of several changes sent again", a, b)
	if left := t.get(c.Key); left.Exists() {
		t.Errorf("the removed object is %s", in(&left))
	}
}

func tokenPrecedesPreconditions(t *trial) {
	other := t.put(key("other"), idle)
	c := commitOf(change(t.get(key("a")), idle))
	c.Require = []lifecycle.Precondition{{Key: other.Key, States: []string{idle}}}
	sent, filled := t.sent(c)
	t.move(other, broken)
	t.repeat(sent, filled, "after its precondition has ceased to hold")
}

func anotherToken(t *trial) {
	sent, filled := t.sent(commitOf(change(t.get(key("a")), idle)))
	for range 2 {
		other := again(sent)
		other.Token = lifecycle.NewToken()
		t.refused(other, "the same changes under another token")
	}
	t.stays("the same changes under another token", filled.Changes[0].To)
}
