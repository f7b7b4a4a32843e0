package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func messageDemands() []demand {
	return []demand{
		{
			name: "Messages/come_with_the_commit", run: messagesCome, needs: needMessages,
			says: "The messages of a commit are there when it is acknowledged, unchanged, in the order of the commits and within one as given, each under a number of its own.",
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
			says: "The oldest messages are read, at most as many as asked for; reading removes none.",
		},
		{
			name: "Messages/are_discarded_by_number", run: messagesDiscarded, needs: needMessages,
			says: "Discard removes the messages of the numbers it is given, wherever they stand, and no other; numbers of none are no error, and none is given again.",
		},
		{
			name: "Messages/a_reader_misses_none", run: readerMissesNone, needs: needMessages,
			says: "A reader that discards what it has read gets every message once, and those of one object in order, while many goroutines commit.",
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

// told demands messages and returns their numbers.
func (t *trial) told(got []lifecycle.OutboxMessage, want []lifecycle.Message) (numbers []uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("there are %d messages, not %d", len(got), len(want))
	}
	for i := range got {
		same(t, fmt.Sprintf("message %d of %d", i+1, len(want)), got[i].Message, want[i])
		if slices.Contains(numbers, got[i].Number) {
			t.Fatalf("two messages have the number %d", got[i].Number)
		}
		numbers = append(numbers, got[i].Number)
	}
	return numbers
}

func messagesCome(t *trial) {
	t.told(t.messages(all), nil)
	want := t.say(key("a"), "one")
	t.told(t.messages(all), want)
	want = append(want, t.say(key("b"), "two", "three", "two")...)
	t.told(t.messages(all), want)
	t.put(key("c"), idle) // says nothing
	c := commitOf(removal(t.get(key("a"))))
	c.Messages = []lifecycle.Message{message("four"), {}}
	t.commit(c)
	t.told(t.messages(all), append(want, c.Messages...))
}

func messagesAreCopied(t *trial) {
	buffer := []byte("one")
	c := commitOf(change(t.get(key("a")), moving))
	c.Messages = []lifecycle.Message{{Topic: "t", Payload: buffer}}
	t.commit(c)
	copy(buffer, "two")
	t.told(t.messages(all), []lifecycle.Message{{Topic: "t", Payload: []byte("one")}})
}

func messagesOfRefused(t *trial) {
	first := t.put(key("a"), idle)
	now := t.move(first, moving)
	want := t.say(key("b"), "one")
	c := commitOf(change(first, broken))
	c.Messages = []lifecycle.Message{message("refused")}
	t.refused(c, "an outdated revision")
	t.told(t.messages(all), want)
	if t.store.Capabilities().Changes >= 2 {
		c = commitOf(change(now, broken))
		c.Messages = []lifecycle.Message{message("refused")}
		c.Require = []lifecycle.Precondition{{Key: key("b"), States: []string{broken}}}
		if err := send(t.Context(), t.store, c); err == nil {
			t.Error("a commit whose precondition does not hold was written")
		}
		t.told(t.messages(all), want)
	}
	want = append(want, t.say(key("b"), "two")...)
	t.told(t.messages(all), want)
}

func messagesComeOnce(t *trial) {
	c := commitOf(change(t.get(key("a")), idle))
	c.Messages = []lifecycle.Message{message("one"), message("two")}
	sent, filled := t.sent(c)
	t.repeat(sent, filled, "at once")
	t.told(t.messages(all), c.Messages)
	want := append(again(c).Messages, t.say(key("b"), "three")...)
	t.repeat(sent, filled, "after another object's commit")
	t.told(t.messages(all), want)
}

func messagePages(t *trial) {
	var want []lifecycle.Message
	for i := range 4 {
		want = append(want, t.say(key("a"), fmt.Sprint("x", i), fmt.Sprint("y", i))...)
	}
	numbers := t.told(t.messages(all), want)
	for range want {
		for limit := 1; limit <= len(want)+1; limit++ {
			page := min(limit, len(want))
			if got := t.told(t.messages(limit), want[:page]); !slices.Equal(got, numbers[:page]) {
				t.Fatalf("the messages were numbered %d, a page of %d has %d", numbers, limit, got)
			}
		}
		t.discard(numbers[0])
		numbers, want = numbers[1:], want[1:]
	}
}

func messagesDiscarded(t *trial) {
	want := t.say(key("a"), "0", "1", "2", "3", "4", "5", "6")
	numbers := t.told(t.messages(all), want)
	highest := slices.Max(numbers)
	t.discard()
	t.discard(highest+1000, 0)
	t.told(t.messages(all), want)
	for _, gone := range [][]int{{3}, {3, 0}, {6, 1}, {2, 6, 2}, {5, 4}} {
		var these []uint64
		for _, i := range gone {
			these = append(these, numbers[i])
			want[i] = lifecycle.Message{}
		}
		left := slices.DeleteFunc(slices.Clone(want), func(m lifecycle.Message) bool { return m.Topic == "" })
		for range 2 {
			t.discard(these...)
			t.told(t.messages(all), left)
		}
	}
	want = t.say(key("a"), "7")
	for _, n := range t.told(t.messages(all), want) {
		if slices.Contains(numbers, n) {
			t.Errorf("number %d, of a message that is discarded, is given again", n)
		}
	}
	t.discard(numbers...)
	t.told(t.messages(all), want)
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
		outbox := t.store.(lifecycle.Outbox)
		for done := false; ; {
			list, err := outbox.Messages(t.Context(), 3)
			if err != nil {
				t.Errorf("Messages: %v", err)
				return
			}
			if len(list) == 0 && done {
				return
			}
			done = writing.Load() == 0 // what comes after this is read once more
			var numbers []uint64
			for _, m := range list {
				numbers = append(numbers, m.Number)
			}
			if err := outbox.Discard(t.Context(), numbers...); err != nil {
				t.Errorf("Discard: %v", err)
				return
			}
			got = append(got, list...)
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
