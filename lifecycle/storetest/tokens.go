package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var tokenDemands = []demand{
	{name: "Token/repeated_commit_is_written_once", check: repeatedCommitIsWrittenOnce},
	{name: "Token/is_known_while_the_history_has_it", check: tokenIsKnown},
	{name: "Token/covers_all_changes", check: tokenCoversAllChanges},
	{name: "Token/precedes_preconditions", check: tokenPrecedesPreconditions},
	{name: "Token/another_token_conflicts", check: anotherTokenConflicts},
}

// sentCommit is a commit as it was sent and as the store filled it.
type sentCommit struct{ sent, filled *lifecycle.Commit }

func (t *tester) sent(c *lifecycle.Commit) sentCommit {
	t.Helper()
	s := sentCommit{c, clone(c)}
	t.commit(s.filled)
	return s
}

// repeat requires that a commit that is sent again has the same results.
func (t *tester) repeat(s sentCommit, when string) {
	t.Helper()
	twin := clone(s.sent)
	require.NoError(t, send(t.Context(), t.store, twin), "a commit that was sent again %s", when)
	equal(t, s.filled.Changes, twin.Changes, "the result of a commit that was sent again "+when)
}

// A commit that is sent again returns no error and the same results, and is not
// written again.
func repeatedCommitIsWrittenOnce(t *tester) {
	r := t.get(key("a"))
	for _, state := range []string{idle, moving, moving} {
		ch := change(r, state)
		ch.Timeout = hour
		s := t.sent(commitOf(ch))
		r = s.filled.Changes[0].To
		for range 2 {
			t.repeat(s, "at once")
			t.repeat(sentCommit{s.filled, s.filled}, "with the fields of the store")
			t.unchanged("a repeated commit", r)
		}
	}
}

// The same holds while the history has the commit: after the object was changed, was
// removed, and was created again.
func tokenIsKnown(t *tester) {
	t.needsHistory()
	var commits []sentCommit
	r := t.get(key("a"))
	for i := range kept - 2 {
		commits = append(commits, t.sent(commitOf(change(r, []string{idle, moving}[i%2]))))
		r = commits[i].filled.Changes[0].To
	}
	commits = append(commits, t.sent(commitOf(removal(r))))
	check := func(when string) {
		before := t.get(r.Key)
		for _, s := range commits {
			t.repeat(s, when)
		}
		t.unchanged("repeated commits "+when, before)
	}
	check("after the removal")
	t.put(r.ID, idle)
	check("after the object was created again")
}

// A commit of several changes that is sent again has the results of all changes, also
// after some of its objects were changed.
func tokenCoversAllChanges(t *tester) {
	t.needsChanges(3)
	a, b, c := t.get(key("a")), t.put("b", idle), t.put("c", idle)
	ch := change(b, moving)
	ch.Timeout = hour
	s := t.sent(commitOf(change(a, idle), ch, removal(c)))
	t.repeat(s, "at once")
	a, b = s.filled.Changes[0].To, s.filled.Changes[1].To
	t.unchanged("a repeated commit", a, b)
	if t.has.History {
		a = t.move(a, broken)
		t.repeat(s, "after the first object was changed")
		b = t.move(b, broken)
		t.repeat(s, "after the second object was changed")
		t.unchanged("repeated commits", a, b)
	}
	t.absent(c.Key)
}

// The preconditions of a commit that was written are not checked again.
func tokenPrecedesPreconditions(t *tester) {
	t.needsChanges(2)
	other := t.put("other", idle)
	c := commitOf(change(t.get(key("a")), idle))
	c.Require = []lifecycle.Precondition{{Key: other.Key, States: []string{idle}}}
	s := t.sent(c)
	t.move(other, broken)
	t.repeat(s, "after its precondition has ceased to hold")
}

// The same changes under another token are a conflict.
func anotherTokenConflicts(t *tester) {
	s := t.sent(commitOf(change(t.get(key("a")), idle)))
	for range 2 {
		t.conflict(commitOf(s.sent.Changes...), "the same changes under another token")
	}
	t.unchanged("a conflict", s.filled.Changes[0].To)
}
