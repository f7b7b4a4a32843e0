package storetest

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

func capabilityDemands() []demand {
	return []demand{
		{
			name: "Capabilities/are_honest", run: capabilitiesAreHonest,
			says: "What is declared is there: at least one change in a commit, Historian with History, Outbox with Messages.",
		},
		{
			name: "Capabilities/never_change", run: capabilitiesNeverChange,
			says: "The declaration is the same before and after calls.",
		},
		{
			name: "Capabilities/undeclared_changes_are_refused", run: tooManyChanges,
			says: "A commit with more changes and preconditions than declared is refused with errors.ErrUnsupported, and nothing of it is written.",
		},
		{
			name: "Capabilities/undeclared_messages_are_refused", run: undeclaredMessages,
			says: "Without Messages, a commit that carries one is refused with errors.ErrUnsupported, and nothing of it is written.",
		},
	}
}

func capabilitiesAreHonest(t *trial) {
	if lie := dishonest(t.store); lie != "" {
		t.Error(lie)
	}
}

// dishonest says what a store declares and has not, nothing if it has all.
func dishonest(store lifecycle.Store) string {
	has := store.Capabilities()
	_, historian := store.(lifecycle.Historian)
	_, outbox := store.(lifecycle.Outbox)
	switch {
	case has.Changes < 1:
		return fmt.Sprintf("the store declares %d changes in a commit: every store takes one", has.Changes)
	case has.History && !historian:
		return "the store declares History, but is no Historian"
	case has.Messages && !outbox:
		return "the store declares Messages, but is no Outbox"
	}
	return ""
}

func capabilitiesNeverChange(t *trial) {
	before := t.store.Capabilities()
	r := t.put(key("a"), idle)
	t.remove(t.move(r, moving))
	t.list(lifecycle.Query{Machine: machine})
	if after := t.store.Capabilities(); after != before {
		t.Errorf("the capabilities were %+v and are %+v", before, after)
	}
}

func tooManyChanges(t *trial) {
	most := t.store.Capabilities().Changes
	first := t.get(key("0"))
	tooMany := commitOf()
	for i := range most + 1 {
		r := lifecycle.StoredRecord{Key: key(fmt.Sprint(i)), Revision: first.Revision, Sequence: first.Sequence}
		tooMany.Changes = append(tooMany.Changes, change(r, idle))
	}
	t.unsupported(tooMany, fmt.Sprintf("%d changes", most+1))

	conditions := commitOf(change(first, idle))
	for i := range most {
		conditions.Require = append(conditions.Require, lifecycle.Precondition{
			Key: key(fmt.Sprint("other", i)), States: []string{""},
		})
	}
	t.unsupported(conditions, fmt.Sprintf("a change and %d preconditions", most))
	t.stays("what is not supported", first)
	if found := t.ids(lifecycle.Query{Machine: machine}); len(found) > 0 {
		t.Errorf("after what is not supported there are %d objects", len(found))
	}
}

func undeclaredMessages(t *trial) {
	if t.store.Capabilities().Messages {
		t.Skip("skipped: the store declares Messages")
	}
	before := t.get(key("a"))
	c := commitOf(change(before, idle))
	c.Messages = []lifecycle.Message{{Topic: "t", Key: "a", Payload: []byte("x")}}
	t.unsupported(c, "a message")
	t.stays("what is not supported", before)
}

func (t *trial) unsupported(c *lifecycle.Commit, what string) {
	t.Helper()
	if err := t.store.Commit(t.Context(), c); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a commit of %s is to be refused with errors.ErrUnsupported, it is: %v", what, err)
	}
}
