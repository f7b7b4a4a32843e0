package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var messageDemands = []demand{
	{name: "Messages/come_with_the_commit", check: messagesComeWithTheCommit},
	{name: "Messages/do_not_come_with_a_refused_commit", check: noMessagesOfARefusedCommit},
	{name: "Messages/come_once", check: messagesComeOnce},
	{name: "Messages/pages", check: messagePages},
	{name: "Messages/are_discarded_by_number", check: messagesAreDiscardedByNumber},
	{name: "Messages/reader_misses_none", check: readerMissesNone},
}

// emit moves an object in a commit with messages and returns the messages.
func (t *tester) emit(id string, texts ...string) []lifecycle.Message {
	t.Helper()
	c := commitOf(change(t.get(key(id)), moving))
	for _, text := range texts {
		c.Messages = append(c.Messages, message(text))
	}
	t.commit(c)
	return c.Messages
}

// The messages of a commit are in the outbox when the commit is acknowledged,
// unchanged, in the order of the commits and of each commit, each with a number of its
// own. Later changes of the caller's bytes do not change them.
func messagesComeWithTheCommit(t *tester) {
	t.needsMessages()
	t.outbox(nil, "nothing")
	want := t.emit("a", "one")
	want = append(want, t.emit("b", "two", "three", "two")...)
	t.put("c", idle)
	t.outbox(want, "commits")
	c := commitOf(removal(t.get(key("a"))))
	buffer := []byte("four")
	c.Messages = []lifecycle.Message{{Topic: "t", Payload: buffer}, {}}
	t.commit(c)
	copy(buffer, "five")
	t.outbox(append(want, lifecycle.Message{Topic: "t", Payload: []byte("four")}, lifecycle.Message{}), "a removal")
}

// A commit that was refused leaves no message.
func noMessagesOfARefusedCommit(t *tester) {
	t.needsMessages()
	old := t.put("a", idle)
	now := t.move(old, moving)
	want := t.emit("b", "one")
	c := commitOf(change(old, broken))
	c.Messages = []lifecycle.Message{message("refused")}
	t.conflict(c, "an outdated revision")
	t.outbox(want, "a conflict")
	if t.has.Changes >= 2 {
		c = commitOf(change(now, broken))
		c.Messages = []lifecycle.Message{message("refused")}
		c.Require = []lifecycle.Precondition{{Key: key("b"), States: []string{broken}}}
		require.ErrorIs(t, send(t.Context(), t.store, c), lifecycle.ErrPrecondition)
	}
	t.outbox(append(want, t.emit("b", "two")...), "refused commits")
}

// A commit that is sent again appends no messages.
func messagesComeOnce(t *tester) {
	t.needsMessages()
	c := commitOf(change(t.get(key("a")), idle))
	c.Messages = []lifecycle.Message{message("one"), message("two")}
	s := t.sent(c)
	t.repeat(s, "at once")
	t.outbox(c.Messages, "a repeated commit")
	want := append(slices.Clone(c.Messages), t.emit("b", "three")...)
	t.repeat(s, "after another object's commit")
	t.outbox(want, "a repeated commit")
}

// Messages returns the oldest messages, at most as many as requested, and removes
// none.
func messagePages(t *tester) {
	t.needsMessages()
	var want []lifecycle.Message
	for i := range 4 {
		want = append(want, t.emit("a", fmt.Sprint("x", i), fmt.Sprint("y", i))...)
	}
	numbers := t.outbox(want, "commits")
	for len(want) > 0 {
		for limit := 1; limit <= len(want)+1; limit++ {
			page := min(limit, len(want))
			require.Equal(t, numbers[:page], t.oldest(limit, want[:page], "commits"))
		}
		t.discard(numbers[0])
		numbers, want = numbers[1:], want[1:]
	}
}

func (t *tester) discard(numbers ...uint64) {
	t.Helper()
	require.NoError(t, t.store.(lifecycle.Outbox).Discard(t.Context(), numbers...), "Discard of %d", numbers)
}

// Discard removes the messages with these numbers and no others. An unknown number is
// no error. No number is given to another message.
func messagesAreDiscardedByNumber(t *tester) {
	t.needsMessages()
	want := t.emit("a", "0", "1", "2", "3", "4", "5", "6")
	numbers := t.outbox(want, "a commit")
	t.discard()
	t.discard(slices.Max(numbers)+1000, 0)
	t.outbox(want, "unknown numbers were discarded")
	left := slices.Clone(want)
	for _, places := range [][]int{{3}, {3, 0}, {6, 1}, {2, 6, 2}, {5, 4}} {
		var discarded []uint64
		for _, i := range places {
			discarded = append(discarded, numbers[i])
			left = slices.DeleteFunc(left, func(m lifecycle.Message) bool { return m.Topic == want[i].Topic })
		}
		for range 2 {
			t.discard(discarded...)
			t.outbox(left, fmt.Sprintf("the messages at %d were discarded", places))
		}
	}
	last := t.emit("a", "7")
	require.NotContains(t, numbers, t.outbox(last, "a later commit")[0], "a number is repeated")
	t.discard(numbers...)
	t.outbox(last, "the earlier messages were discarded again")
}

// A reader that discards what it has read gets every message once, and those of one
// object in order, while many callers commit.
func readerMissesNone(t *tester) {
	outbox := t.needsMessages()
	const writers = 8
	each := max(1, t.attempts/5)
	var writing atomic.Int64
	writing.Store(writers)
	next := map[string]int{} // by writer: the number of its messages that were read
	t.together(writers+1, func(i int) error {
		if i < writers {
			defer writing.Add(-1)
			return t.emitMany(fmt.Sprint("writer", i), each)
		}
		for last := false; ; {
			list, err := outbox.Messages(t.Context(), 3)
			if err != nil || len(list) == 0 && last {
				return err
			}
			last = writing.Load() == 0 // one more page, of what was written before this
			var numbers []uint64
			for _, m := range list {
				numbers = append(numbers, m.Number)
				if want := fmt.Sprint(m.Key, " ", next[m.Key]); string(m.Payload) != want {
					return fmt.Errorf("a reader has got message %q instead of %q", m.Payload, want)
				}
				next[m.Key]++
			}
			if err := outbox.Discard(t.Context(), numbers...); err != nil {
				return err
			}
		}
	})
	for i := range writers {
		require.Equal(t, each, next[fmt.Sprint("writer", i)], "messages of writer %d", i)
	}
}

// emitMany commits n times to an object of its own, with a message each time.
func (t *tester) emitMany(id string, n int) error {
	r, err := t.store.Get(t.Context(), key(id))
	for i := 0; i < n && err == nil; i++ {
		c := commitOf(change(r, moving))
		c.Messages = []lifecycle.Message{{Topic: "t", Key: id, Payload: fmt.Append(nil, id, " ", i)}}
		err = send(t.Context(), t.store, c)
		r = c.Changes[0].To
	}
	return err
}
