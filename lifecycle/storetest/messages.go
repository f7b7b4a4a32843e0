package storetest

import (
	"fmt"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var messageDemands = []demand{
	{name: "Messages/come_with_the_commit", check: messagesComeWithTheCommit},
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

func (t *tester) discard(numbers ...uint64) {
	t.Helper()
	require.NoError(t, t.store.(lifecycle.Outbox).Discard(t.Context(), numbers...), "Discard of %d", numbers)
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
