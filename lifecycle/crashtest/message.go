package crashtest

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// lineOf returns a text that identifies a message.
func lineOf(m *lifecycle.Message) string { return fmt.Sprintf("%s %q %q", m.Topic, m.Key, m.Payload) }

// messages checks that every message is there once for every commit that contained
// it. It checks nothing after messages were discarded.
func (w *world) messages() {
	outbox, ok := w.inner.(lifecycle.Outbox)
	if !ok || !w.inner.Capabilities().Messages {
		return
	}
	var list []lifecycle.OutboxMessage
	for limit := 128; ; limit *= 2 { // until there are fewer, and so all
		var err error
		if list, err = outbox.Messages(context.Background(), limit); err != nil {
			w.blame("Messages: %v", err)
			return
		}
		if len(list) < limit {
			break
		}
	}
	there := map[string]int{}
	for i := range list {
		there[lineOf(&list[i].Message)]++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.discarded {
		return
	}
	for m, n := range w.sent {
		if there[m] != n {
			w.accuse("the message %s is there %d times, it was committed %d times", m, there[m], n)
		}
	}
}
