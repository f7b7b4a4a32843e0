package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/interlock-go/interlock/internal/shrink"
	"github.com/interlock-go/interlock/lifecycle"
)

func modelDemands() []demand {
	return []demand{{
		name: "Model/random_sequences_agree", run: randomSequences,
		says: "Random sequences of calls are answered like a naive model answers them; the shortest sequence found that is not is told.",
	}}
}

func randomSequences(t *trial) {
	seed := t.h.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	most := min(t.store.Capabilities().Changes, 4)
	runs := 0
	play := func(steps []step) error {
		runs++
		return newModel(t.Context(), t.store, runs).play(steps)
	}
	for i := range t.sequences {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		steps := make([]step, 40)
		for k := range steps {
			steps[k] = draw(random.IntN, most)
		}
		if err := play(steps); err != nil {
			t.Fatal(shrink.Report(seed, steps, err, play))
		}
	}
}

// model is what a store is to hold, in the most naive form.
type model struct {
	ctx     context.Context // of one run, which is one call
	store   lifecycle.Store
	has     lifecycle.Capabilities
	run     int
	records [modelObjects]lifecycle.StoredRecord // of absent ones what is known
	seen    [modelObjects][]lifecycle.Revision
	rows    [modelObjects][]lifecycle.HistoryRow
	born    [modelObjects]int // rows before the present life
	outbox  []lifecycle.Message
	sent    []sentCommit
	changes int
}

type sentCommit struct {
	sent, filled *lifecycle.Commit
	changes      int // how many were written up to it
}

// newModel returns the model of a run, which has machines of its own.
func newModel(ctx context.Context, store lifecycle.Store, run int) *model {
	m := &model{ctx: ctx, store: store, has: store.Capabilities(), run: run}
	for o := range m.records {
		m.records[o].Key = lifecycle.Key{Machine: m.machine(o % modelMachines), ID: string(rune('a' + o/modelMachines))}
	}
	return m
}

func (m *model) machine(i int) string { return fmt.Sprintf("model %d of run %d", i, m.run) }

// play takes the steps, then looks at everything.
func (m *model) play(steps []step) error {
	if err := m.emptyOutbox(); err != nil {
		return err
	}
	for i, s := range steps {
		if err := m.take(s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	look := step{limit: modelObjects + 1, after: -1, within: true}
	for o := range modelObjects {
		look.objects = []int{o}
		for _, k := range []kind{getStep, listStep, historyStep, messagesStep} {
			look.kind = k
			if err := m.take(look); err != nil {
				return fmt.Errorf("at the end: %w", err)
			}
		}
	}
	return nil
}

func (m *model) take(s step) error {
	switch s.kind {
	case commitStep:
		return m.commit(s)
	case getStep:
		return m.get(s.objects[0])
	case listStep:
		return m.list(s)
	case historyStep:
		return m.history(s)
	case messagesStep:
		_, err := m.messages(s.limit)
		return err
	case discardStep:
		return m.discard(s.limit)
	case againStep:
		return m.again(s.limit)
	}
	return fmt.Errorf("a step of kind %d", s.kind)
}

// get reads a record and compares it. Of an absent one it learns the numbers,
// which may have grown.
func (m *model) get(o int) error {
	want := &m.records[o]
	got, err := m.store.Get(m.ctx, want.Key)
	if err != nil {
		return fmt.Errorf("store.Get: %w", err)
	}
	if want.Exists() {
		if d := differences(got, *want); d != "" {
			return fmt.Errorf("store.Get of %s: %s", modelName(o), d)
		}
		return nil
	}
	if got.Exists() || got.Key != want.Key || got.Sequence < want.Sequence || got.Operation < want.Operation {
		return fmt.Errorf("store.Get of %s, which is absent after #%d and operation %d: %+v", modelName(o), want.Sequence, want.Operation, got)
	}
	*want = got
	return m.see(o)
}

// see remembers the revision of a record, which must be a new one or the last.
func (m *model) see(o int) error {
	r := m.records[o].Revision
	i := slices.Index(m.seen[o], r)
	switch {
	case i < 0:
		m.seen[o] = append(m.seen[o], r)
	case i < len(m.seen[o])-1:
		return fmt.Errorf("revision %q of %s was there before", r, modelName(o))
	}
	return nil
}

func (m *model) list(s step) error {
	q := lifecycle.Query{Machine: m.machine(s.objects[0] % modelMachines), Limit: s.limit}
	if !s.within {
		for _, state := range s.states {
			q.States = append(q.States, stateName(state))
		}
	}
	if s.after >= 0 {
		q.After = m.records[s.after].ID
	}
	var want []lifecycle.StoredRecord
	for o := range m.records { // in order of id within a machine
		r := m.records[o]
		if r.Machine == q.Machine && r.Exists() && r.ID > q.After && len(want) < q.Limit &&
			(q.States == nil || slices.Contains(q.States, r.State)) {
			want = append(want, r)
		}
	}
	got, err := m.store.List(m.ctx, q)
	if err != nil {
		return fmt.Errorf("store.List: %w", err)
	}
	if len(got) != len(want) {
		return fmt.Errorf("store.List by %+v gives %d records, not %d", q, len(got), len(want))
	}
	for i := range got {
		if d := differences(got[i], want[i]); d != "" {
			return fmt.Errorf("store.List by %+v, record %d: %s", q, i+1, d)
		}
	}
	return nil
}

func (m *model) history(s step) error {
	if !m.has.History {
		return nil
	}
	o := s.objects[0]
	rows, err := m.store.(lifecycle.Historian).History(m.ctx, m.records[o].Key, 0, all)
	if err != nil {
		return fmt.Errorf("store.History: %w", err)
	}
	want, atLeast := m.rows[o], 0
	if m.records[o].Exists() {
		atLeast = min(kept, len(want)-m.born[o])
	}
	if len(rows) < atLeast || len(rows) > len(want) {
		return fmt.Errorf("store.History of %s has %d rows of %d, where at least %d are to be kept", modelName(o), len(rows), len(want), atLeast)
	}
	for i, w := range want[len(want)-len(rows):] {
		if d := differences(rows[i], w); d != "" {
			return fmt.Errorf("store.History of %s, row of #%d: %s", modelName(o), w.Sequence, d)
		}
	}
	return nil
}

func (m *model) messages(limit int) ([]lifecycle.OutboxMessage, error) {
	if !m.has.Messages {
		return nil, nil
	}
	got, err := m.store.(lifecycle.Outbox).Messages(m.ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("store.Messages: %w", err)
	}
	want := m.outbox[:min(limit, len(m.outbox))]
	if len(got) != len(want) {
		return nil, fmt.Errorf("store.Messages gives %d, not %d", len(got), len(want))
	}
	for i := range got {
		if d := differences(got[i].Message, want[i]); d != "" {
			return nil, fmt.Errorf("message %d: %s", i+1, d)
		}
	}
	return got, nil
}

// discard removes every other of the oldest messages.
func (m *model) discard(limit int) error {
	got, err := m.messages(limit)
	if err != nil || len(got) == 0 {
		return err
	}
	var numbers []uint64
	var left []lifecycle.Message
	for i := range got {
		if i%2 == 0 {
			numbers = append(numbers, got[i].Number)
		} else {
			left = append(left, m.outbox[i])
		}
	}
	if err := m.store.(lifecycle.Outbox).Discard(m.ctx, numbers...); err != nil {
		return fmt.Errorf("store.Discard: %w", err)
	}
	m.outbox = append(left, m.outbox[len(got):]...)
	return nil
}

// emptyOutbox discards what other runs have left.
func (m *model) emptyOutbox() error {
	if !m.has.Messages {
		return nil
	}
	outbox := m.store.(lifecycle.Outbox)
	for {
		list, err := outbox.Messages(m.ctx, all)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := outbox.Discard(m.ctx, list[i].Number); err != nil {
				return err
			}
		}
	}
}

// again sends a commit again, if it is so recent that it must be known.
func (m *model) again(back int) error {
	known := 0
	if m.has.History {
		known = kept - 1
	}
	if back > len(m.sent) {
		return nil
	}
	s := m.sent[len(m.sent)-back]
	if m.changes-s.changes > known {
		return nil
	}
	twin := again(s.sent)
	if err := send(m.ctx, m.store, twin); err != nil {
		return fmt.Errorf("a commit sent again after %d changes: %w", m.changes-s.changes, err)
	}
	for i := range twin.Changes {
		if d := differences(twin.Changes[i].To, s.filled.Changes[i].To); d != "" {
			return fmt.Errorf("a commit sent again: %s", d)
		}
	}
	return nil
}

// commit sends a commit and demands the answer of the model.
func (m *model) commit(s step) error {
	c := &lifecycle.Commit{Token: lifecycle.NewToken()}
	for i, o := range s.objects {
		if !m.records[o].Exists() {
			if err := m.get(o); err != nil {
				return err
			}
		}
		ch := change(m.records[o], stateName(s.states[i]))
		if s.removes[i] && m.records[o].Exists() {
			ch = removal(m.records[o])
		}
		ch.To.Reason = fmt.Sprint("change ", m.changes+i)
		if s.within && !ch.Remove {
			ch.Timeout = hour
		}
		c.Changes = append(c.Changes, ch)
	}
	last := len(c.Changes) - 1
	lies := m.lie(&c.Changes[last], s.lie, s.objects[last])
	unmet := false
	if s.required >= 0 {
		p := lifecycle.Precondition{Key: m.records[s.required].Key}
		for _, state := range s.allowed {
			p.States = append(p.States, stateName(state))
		}
		c.Require = []lifecycle.Precondition{p}
		unmet = !slices.Contains(p.States, m.records[s.required].State)
	}
	for i := range s.messages {
		if m.has.Messages {
			c.Messages = append(c.Messages, lifecycle.Message{Topic: "t", Payload: fmt.Append(nil, m.changes, "/", i)})
		}
	}
	filled := again(c)
	switch err := send(m.ctx, m.store, filled); {
	case err == nil && (lies || unmet):
		return fmt.Errorf("a commit was written, a lie: %t, an unmet precondition: %t", lies, unmet)
	case err == nil:
		return m.accept(s, c, filled)
	default:
		return m.refusal(err, last, s, lies, unmet)
	}
}

// lie makes a change expect what is not, and reports whether it could.
func (m *model) lie(ch *lifecycle.StoredChange, l lie, o int) bool {
	switch {
	case l == mistaken:
		ch.From = stateName(0)
		if m.records[o].State == ch.From {
			ch.From = stateName(1)
		}
		return true
	case l == outdated && len(m.seen[o]) > 1:
		ch.Expect = m.seen[o][len(m.seen[o])-2]
		return true
	}
	return false
}

func (m *model) refusal(err error, last int, s step, lies, unmet bool) error {
	conflict, isConflict := errors.AsType[*lifecycle.ConflictError](err)
	broken, isBroken := errors.AsType[*lifecycle.PreconditionError](err)
	switch {
	case isConflict && lies:
		if d := differences(conflict.Current, m.records[s.objects[last]]); conflict.Change != last || d != "" {
			return fmt.Errorf("a conflict of change %d, not %d: %s", conflict.Change, last, d)
		}
	case isBroken && unmet:
		if m.records[s.required].Exists() || broken.Current.Exists() {
			if d := differences(broken.Current, m.records[s.required]); d != "" {
				return fmt.Errorf("a failed precondition: %s", d)
			}
		}
	default:
		return fmt.Errorf("a commit was refused, a lie: %t, an unmet precondition: %t: %w", lies, unmet, err)
	}
	return nil
}

// accept takes over what was written.
func (m *model) accept(s step, c, filled *lifecycle.Commit) error {
	for i, o := range s.objects {
		ch := &filled.Changes[i]
		if !m.records[o].Exists() {
			m.born[o] = len(m.rows[o])
		}
		m.rows[o] = append(m.rows[o], ch.Row(c.Token))
		m.records[o] = ch.To
		if err := m.see(o); err != nil {
			return err
		}
		if ch.Remove {
			m.records[o] = lifecycle.StoredRecord{Key: ch.To.Key, Sequence: ch.To.Sequence, Operation: ch.To.Operation}
			if err := m.get(o); err != nil {
				return err
			}
		}
		if ch.Timeout > 0 && !ch.Remove && !ch.To.Deadline.Equal(ch.To.ChangedAt.Add(ch.Timeout)) {
			return fmt.Errorf("the deadline of %s is %v, %v after the change at %v", modelName(o), ch.To.Deadline, ch.Timeout, ch.To.ChangedAt)
		}
	}
	m.changes += len(s.objects)
	m.outbox = append(m.outbox, c.Messages...)
	m.sent = append(m.sent, sentCommit{sent: c, filled: filled, changes: m.changes})
	return nil
}
