package storetest

import (
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func messageDemands() []demand {
	return []demand{
		{
			name: "Messages/come_with_the_commit", run: messagesCome, needs: needMessages,
			says: "The messages of a commit are there when it is acknowledged, unchanged, in the order of the commits and within one as given, under growing numbers.",
		},
		{
			name: "Messages/are_copied", run: messagesAreCopied, needs: needMessages,
			says: "The bytes of a message are those at the commit, whatever the caller writes over them afterwards.",
		},
		{
			name: "Messages/not_with_a_refused_commit", run: messagesOfRefused, needs: needMessages,
			says: "A commit that was refused leaves no message.",
		},
		{
			name: "Messages/come_once", run: messagesComeOnce, needs: needMessages,
			says: "A commit that is sent again appends nothing.",
		},
		{
			name: "Messages/pages", run: messagePages, needs: needMessages,
			says: "Messages are read from above a number, at most as many as asked for; reading removes none.",
		},
		{
			name: "Messages/are_discarded_up_to_a_number", run: messagesDiscarded, needs: needMessages,
			says: "Discard removes the messages up to a number and no other; those to come are numbered above it; it may be repeated.",
		},
		{
			name: "Messages/a_reader_misses_none", run: readerMissesNone, needs: needMessages,
			says: "A reader that goes on from the last number it has seen gets every message, while many goroutines commit.",
		},
	}
}

func message(text string) lifecycle.Message {
	return lifecycle.Message{Topic: "topic of " + text, Key: "key/ü", Payload: []byte(text + "\x00\xff")}
}

// say moves an object with messages, and returns them.
func (t *trial) say(k lifecycle.Key, texts ...string) []lifecycle.Message {
	t.Helper()
	c := commitOf(change(t.get(k), moving))
	for _, text := range texts {
		c.Messages = append(c.Messages, message(text))
	}
	t.commit(c)
	return c.Messages
}

// told demands messages and returns the number of the last.
func (t *trial) told(got []lifecycle.OutboxMessage, after uint64, want []lifecycle.Message) uint64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("there are %d messages, not %d", len(got), len(want))
	}
	for i := range got {
		same(t, fmt.Sprintf("message %d of %d", i+1, len(want)), got[i].Message, want[i])
		if got[i].Number <= after {
			t.Fatalf("message %d has number %d after number %d", i+1, got[i].Number, after)
		}
		after = got[i].Number
	}
	return after
}

func messagesCome(t *trial) {
	t.told(t.messages(0, all), 0, nil)
	want := t.say(key("a"), "one")
	t.told(t.messages(0, all), 0, want)
	want = append(want, t.say(key("b"), "two", "three", "two")...)
	t.told(t.messages(0, all), 0, want)
	t.put(key("c"), idle) // says nothing
	c := commitOf(removal(t.get(key("a"))))
	c.Messages = []lifecycle.Message{message("four"), {}}
	t.commit(c)
	t.told(t.messages(0, all), 0, append(want, c.Messages...))
}

func messagesAreCopied(t *trial) {
	buffer := []byte("one")
	c := commitOf(change(t.get(key("a")), moving))
	c.Messages = []lifecycle.Message{{Topic: "t", Payload: buffer}}
	t.commit(c)
	copy(buffer, "two")
	t.told(t.messages(0, all), 0, []lifecycle.Message{{Topic: "t", Payload: []byte("one")}})
}

func messagesOfRefused(t *trial) {
	first := t.put(key("a"), idle)
	now := t.move(first, moving)
	want := t.say(key("b"), "one")
	c := commitOf(change(first, broken))
	c.Messages = []lifecycle.Message{message("refused")}
	t.refused(c, "an outdated revision")
	t.told(t.messages(0, all), 0, want)
	if t.store.Capabilities().Changes >= 2 {
		c = commitOf(change(now, broken))
		c.Messages = []lifecycle.Message{message("refused")}
		c.Require = []lifecycle.Precondition{{Key: key("b"), States: []string{broken}}}
		if err := send(t.Context(), t.store, c); err == nil {
			t.Error("a commit whose precondition does not hold was written")
		}
		t.told(t.messages(0, all), 0, want)
	}
	want = append(want, t.say(key("b"), "two")...)
	t.told(t.messages(0, all), 0, want)
}

func messagesComeOnce(t *trial) {
	c := commitOf(change(t.get(key("a")), idle))
	c.Messages = []lifecycle.Message{message("one"), message("two")}
	sent, filled := t.sent(c)
	t.repeat(sent, filled, "at once")
	t.told(t.messages(0, all), 0, c.Messages)
	want := append(again(c).Messages, t.say(key("b"), "three")...)
	t.repeat(sent, filled, "after another object's commit")
	t.told(t.messages(0, all), 0, want)
}

func messagePages(t *trial) {
	var want []lifecycle.Message
	for i := range 4 {
		want = append(want, t.say(key("a"), fmt.Sprint("x", i), fmt.Sprint("y", i))...)
	}
	numbers := []uint64{0}
	for _, m := range t.messages(0, all) {
		numbers = append(numbers, m.Number)
	}
	t.told(t.messages(0, all), 0, want)
	for limit := 1; limit <= len(want)+1; limit++ {
		for i, after := range numbers {
			t.told(t.messages(after, limit), after, want[i:min(i+limit, len(want))])
		}
	}
}

func messagesDiscarded(t *trial) {
	outbox := t.store.(lifecycle.Outbox)
	want := t.say(key("a"), "one", "two", "three", "four")
	list := t.messages(0, all)
	t.told(list, 0, want)
	for discarded := 1; discarded <= len(want); discarded++ {
		upTo := list[discarded-1].Number
		for range 2 {
			if err := outbox.Discard(t.Context(), upTo); err != nil {
				t.Fatalf("Discard up to %d: %v", upTo, err)
			}
			t.told(t.messages(0, all), upTo, want[discarded:])
		}
		if err := outbox.Discard(t.Context(), list[0].Number); err != nil {
			t.Fatalf("Discard of what is discarded: %v", err)
		}
		t.told(t.messages(0, all), upTo, want[discarded:])
	}
	last := list[len(list)-1].Number
	want = t.say(key("a"), "five")
	t.told(t.messages(last, all), last, want)
}

func readerMissesNone(t *trial) {
	const writers = 8
	each := t.attempts / 5
	var writing atomic.Int64
	writing.Store(writers)
	var got []lifecycle.OutboxMessage
	together(writers+1, func(i int) {
		if i < writers {
			defer writing.Add(-1)
			t.chatter(i, each)
			return
		}
		var last uint64
		for done := false; ; {
			list, err := t.store.(lifecycle.Outbox).Messages(t.Context(), last, 3)
			if err != nil {
				t.Errorf("Messages: %v", err)
				return
			}
			if len(list) == 0 && done {
				return
			}
			done = writing.Load() == 0 // what comes after this is read once more
			for _, m := range list {
				got, last = append(got, m), max(last, m.Number)
			}
		}
	})
	heard := map[string]int{} // by writer, how many of its messages
	for _, m := range got {
		if text := fmt.Sprint(m.Key, " ", heard[m.Key]); string(m.Payload) != text {
			t.Errorf("a reader has got %q where %q is next", m.Payload, text)
			return
		}
		heard[m.Key]++
	}
	for i := range writers {
		if n := heard[writerID(i)]; n != each {
			t.Errorf("a reader has got %d messages of %s, not %d", n, writerID(i), each)
		}
	}
}

func writerID(i int) string { return fmt.Sprintf("writer-%02d", i) }

// chatter commits n times to an object of its own, with a message each time.
func (t *trial) chatter(writer, n int) {
	r, err := t.store.Get(t.Context(), key(writerID(writer)))
	for i := range n {
		if err != nil {
			t.Errorf("an object that nobody else writes: %v", err)
			return
		}
		c := commitOf(change(r, moving))
		c.Messages = []lifecycle.Message{{Topic: "t", Key: r.ID, Payload: fmt.Append(nil, r.ID, " ", i)}}
		err = send(t.Context(), t.store, c)
		r = c.Changes[0].To
	}
	if err != nil {
		t.Errorf("an object that nobody else writes: %v", err)
	}
}
