package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/lifecycle"
)

func differStores(t testing.TB, reference, other *Harness) {
	t.Helper()
	stores, both := two(t, reference, other)
	differ(t, reference, 40,
		func(n source) step { return draw(n, min(both.Changes, 4)) },
		func(run int) (players [2]func(step) string) {
			for i := range stores {
				players[i] = newPlayer(t, stores[i], both, run).take
			}
			return players
		})
}

// player makes the calls of a sequence to one store, and tells its answers so
// that those of two stores can be compared.
type player struct {
	testing.TB
	store   lifecycle.Store
	has     lifecycle.Capabilities
	keys    [modelObjects]lifecycle.Key
	before  [modelObjects]lifecycle.Revision     // one that it had, and has no more
	base    [modelObjects]lifecycle.StoredRecord // the absent one that this life began from
	names   names[revision]
	tokens  names[lifecycle.Token]
	sent    []*lifecycle.Commit
	at      []int // how many changes were written when it was sent
	changes int
}

func newPlayer(t testing.TB, store lifecycle.Store, has lifecycle.Capabilities, run int) *player {
	p := &player{TB: t, store: store, has: has, names: names[revision]{}, tokens: names[lifecycle.Token]{}}
	for o := range p.keys {
		p.keys[o] = lifecycle.Key{Machine: fmt.Sprintf("duel %d of run %d", o%modelMachines, run), ID: string(rune('a' + o/modelMachines))}
	}
	for has.Messages {
		list := p.outbox(all)
		if len(list) == 0 {
			break
		}
		for i := range list {
			p.drop(list[i].Number)
		}
	}
	return p
}

func (p *player) take(s step) string {
	switch s.kind {
	case commitStep:
		return p.commit(s)
	case getStep:
		return p.tell(s.objects[0], p.get(s.objects[0]))
	case listStep:
		return p.list(s)
	case historyStep:
		return p.history(s.objects[0])
	case messagesStep:
		return tellMessages(p.outbox(s.limit))
	case discardStep:
		list := p.outbox(s.limit)
		for i := 0; i < len(list); i += 2 {
			p.drop(list[i].Number)
		}
		return tellMessages(p.outbox(all))
	case againStep:
		return p.again(s.limit)
	}
	panic("storetest: a step of no kind")
}

func (p *player) get(o int) lifecycle.StoredRecord {
	r, err := p.store.Get(p.Context(), p.keys[o])
	if err != nil {
		p.Fatalf("Get: %v", err)
	}
	return r
}

// tell describes a record of an object: numbers count from the beginning of its
// life, revisions are named in the order in which they are seen. Of an absent
// record nothing is told but that.
func (p *player) tell(o int, r lifecycle.StoredRecord) string {
	if !r.Exists() {
		return fmt.Sprintf("%s absent", modelName(o))
	}
	line := fmt.Sprintf("%s %s, origin %s, target %q, #%d, operation %d, revision %d, work of %q in epoch %d: %q %q %q, by %s with %q: %q, payload %q",
		modelName(o), r.State, r.Origin, r.Target, r.Sequence-p.base[o].Sequence, r.Operation-p.base[o].Operation, p.names.of(revision{o, r.Revision}),
		r.Owner, r.Epoch, r.Work, r.Args, r.WorkOptions, r.Actor, r.Event, r.Reason, r.Payload)
	if r.Saved != nil {
		line += fmt.Sprintf(", saved %q", r.Saved)
	}
	if !r.Deadline.IsZero() {
		line += fmt.Sprintf(", due after %v", r.Deadline.Sub(r.ChangedAt))
	}
	return line
}

func (p *player) object(k lifecycle.Key) int { return slices.Index(p.keys[:], k) }

// commit builds a commit from what is there, with the lies of the step, and tells
// what the store says to it.
func (p *player) commit(s step) string {
	c := &lifecycle.Commit{Token: lifecycle.NewToken()}
	var were []lifecycle.StoredRecord
	for i, o := range s.objects {
		r := p.get(o)
		were = append(were, r)
		ch := change(r, stateName(s.states[i]))
		if s.removes[i] && r.Exists() {
			ch = removal(r)
		}
		ch.To.Reason = fmt.Sprint("change ", p.changes+i)
		if s.within && !ch.Remove {
			ch.Timeout = hour
		}
		c.Changes = append(c.Changes, ch)
	}
	last, o := len(c.Changes)-1, s.objects[len(s.objects)-1]
	switch {
	case s.lie == mistaken:
		c.Changes[last].From = "Nowhere"
	case s.lie == outdated && p.before[o] != "":
		c.Changes[last].Expect = p.before[o]
	case s.required >= 0: // where a conflict meets a failed precondition, either may be told
		c.Require = []lifecycle.Precondition{{Key: p.keys[s.required], States: []string{stateName(s.allowed[0]), stateName(s.allowed[1])}}}
	}
	for i := range s.messages {
		if p.has.Messages {
			c.Messages = append(c.Messages, lifecycle.Message{Topic: "t", Key: modelName(o), Payload: fmt.Append(nil, p.changes, "/", i)})
		}
	}
	sent := again(c)
	err := send(p.Context(), p.store, c)
	if err != nil {
		return p.refusal(err)
	}
	var lines []string
	for i, o := range s.objects {
		if !were[i].Exists() {
			p.base[o] = were[i]
		}
		p.before[o] = were[i].Revision
		lines = append(lines, p.tell(o, c.Changes[i].To))
	}
	p.changes += len(s.objects)
	p.sent, p.at = append(p.sent, sent), append(p.at, p.changes)
	p.tokens.of(c.Token)
	return "written: " + strings.Join(lines, "; ")
}

func (p *player) refusal(err error) string {
	line := class(err)
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		line += fmt.Sprintf(": change %d from %q; there is %s", conflict.Change, conflict.From, p.tell(p.object(conflict.Current.Key), conflict.Current))
	}
	if unmet, ok := errors.AsType[*lifecycle.PreconditionError](err); ok {
		line += fmt.Sprintf(": %q; there is %s", unmet.States, p.tell(p.object(unmet.Current.Key), unmet.Current))
	}
	return line
}

func (p *player) list(s step) string {
	q := lifecycle.Query{Machine: p.keys[s.objects[0]].Machine, Limit: s.limit}
	if !s.within {
		for _, state := range s.states {
			q.States = append(q.States, stateName(state))
		}
	}
	if s.after >= 0 {
		q.After = p.keys[s.after].ID
	}
	found, err := p.store.List(p.Context(), q)
	lines := []string{class(err)}
	for _, r := range found {
		lines = append(lines, p.tell(p.object(r.Key), r))
	}
	return strings.Join(lines, "; ")
}

// history tells the rows that both stores have to keep: the last of this life.
func (p *player) history(o int) string {
	if r := p.get(o); !p.has.History || !r.Exists() {
		return ""
	}
	rows, err := p.store.(lifecycle.Historian).History(p.Context(), p.keys[o], p.base[o].Sequence, all)
	lines := []string{class(err)}
	for _, row := range rows[max(0, len(rows)-kept):] {
		lines = append(lines, fmt.Sprintf("#%d revision %d token %d operation %d from %q/%q to %s/%s by %s with %q: %q",
			row.Sequence-p.base[o].Sequence, p.names.of(revision{o, row.Revision}), p.tokens.of(row.Token), row.Operation-p.base[o].Operation,
			row.From, row.FromOrigin, row.To, row.Origin, row.Actor, row.Event, row.Reason))
	}
	return strings.Join(lines, "; ")
}

func (p *player) outbox(limit int) []lifecycle.OutboxMessage {
	if !p.has.Messages {
		return nil
	}
	list, err := p.store.(lifecycle.Outbox).Messages(p.Context(), limit)
	if err != nil {
		p.Fatalf("Messages: %v", err)
	}
	return list
}

func (p *player) drop(number uint64) {
	if err := p.store.(lifecycle.Outbox).Discard(p.Context(), number); err != nil {
		p.Fatalf("Discard: %v", err)
	}
}

func tellMessages(list []lifecycle.OutboxMessage) string {
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s %q %q", m.Topic, m.Key, m.Payload))
	}
	return strings.Join(lines, "; ")
}

// again sends a commit again that is so recent that it must be known.
func (p *player) again(back int) string {
	known := 0
	if p.has.History {
		known = kept - 1
	}
	if back > len(p.sent) || p.changes-p.at[len(p.at)-back] > known {
		return ""
	}
	twin := again(p.sent[len(p.sent)-back])
	if err := send(p.Context(), p.store, twin); err != nil {
		return p.refusal(err)
	}
	lines := []string{"written before"}
	for i := range twin.Changes {
		lines = append(lines, fmt.Sprintf("revision %d", p.names.of(revision{p.object(twin.Changes[i].To.Key), twin.Changes[i].To.Revision})))
	}
	return strings.Join(lines, "; ")
}
