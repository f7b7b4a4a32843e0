package storetest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// The machine and the states of most objects in this package.
const (
	machine = "crane"
	idle    = "Idle"
	moving  = "Moving"
	broken  = "Broken"
	gone    = "Gone" // the absent state
)

const (
	hour = time.Hour
	all  = 1000 // a limit that is greater than any result
	kept = 8    // the rows and removed objects that a store remembers at least
)

// patience is the longest time that a demand waits for anything.
var patience = time.Minute

func key(id string) lifecycle.Key { return lifecycle.Key{Machine: machine, ID: id} }

func owner(name string, epoch uint64) lifecycle.OwnerRef {
	return lifecycle.OwnerRef{Name: name, Epoch: epoch}
}

// wrong is the time of changes before the store has set another one.
var wrong = time.Date(1955, 11, 5, 6, 15, 0, 0, time.UTC)

// change moves an object from the record that was read to a state. The fields that the
// store sets are wrong.
func change(before lifecycle.StoredRecord, state string) lifecycle.StoredChange {
	to := lifecycle.StoredRecord{
		Key: before.Key, State: state, Origin: state, Revision: before.Revision, ChangedAt: wrong, Deadline: wrong,
		Sequence: before.Sequence + 1, Operation: before.Operation,
		Actor: "tester", Event: "to " + state, Payload: []byte("in " + state),
	}
	if !before.Exists() {
		to.Operation++
	}
	return lifecycle.StoredChange{Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to}
}

func removal(before lifecycle.StoredRecord) lifecycle.StoredChange {
	ch := change(before, gone)
	ch.To.Payload, ch.Remove = nil, true
	return ch
}

// step is the n-th change of an object: it is created, moved and removed in turn.
func step(before lifecycle.StoredRecord, n int) lifecycle.StoredChange {
	if n%4 == 3 && before.Exists() {
		return removal(before)
	}
	return change(before, []string{idle, moving}[n%2])
}

// fullChange is a change that sets every field that a caller may set.
func (t *tester) fullChange(before lifecycle.StoredRecord) lifecycle.StoredChange {
	ch := lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, Timeout: hour,
		To: lifecycle.StoredRecord{
			Key: before.Key, State: "Being moved", Origin: "Held; \"high\"", Target: "Höhe ist 7'",
			Sequence: before.Sequence + 1, Operation: before.Operation + 1<<60 + 1, // no float64
			Owner: "process/1\\%s", Epoch: 1<<62 + 3,
			Work: "lift: \"high\"", Args: []byte("\x00\xff 'bytes'"), WorkOptions: []byte("[1, 2]"),
			Actor: "the user", Event: "lift — slowly", Reason: "line one\nline \"two\", 50% of it's\ttabbed: ☂ 🏗",
			Payload: []byte(`{"load":[1,2,3]}`), Saved: []byte(`{"load":null}`),
		},
	}
	if !t.config.Bare {
		ch.To.Version, ch.To.Fence = "2026-11 \"ü\"", 1<<62+5
		ch.To.ChangeToken = lifecycle.Token{1, 0xfe, '"', 15: 2}
		ch.To.Admission = lifecycle.Token{0, 0xff, '\'', 15: 1}
	}
	return ch
}

// takeOver is a MetadataOnly change that sets the owner and the deadline.
func takeOver(before lifecycle.StoredRecord, owner string, epoch uint64) lifecycle.StoredChange {
	to := before
	to.Owner, to.Epoch = owner, epoch
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to, Timeout: hour, MetadataOnly: true,
	}
}

// The states of an owner's record.
const (
	alive = "alive"
	dead  = "dead"
)

// join writes the record of an owner, and returns it.
func (t *tester) join(o lifecycle.OwnerRef, state string) lifecycle.StoredRecord {
	ch := change(t.get(o.Key()), state)
	ch.To.Operation = lifecycle.OpID(o.Epoch)
	return t.write(ch)
}

// commitOf returns a commit with a new token.
func commitOf(changes ...lifecycle.StoredChange) *lifecycle.Commit {
	return &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: changes}
}

// clone returns a copy whose changes and messages a store may modify.
func clone(c *lifecycle.Commit) *lifecycle.Commit {
	twin := *c
	twin.Changes, twin.Messages = slices.Clone(c.Changes), slices.Clone(c.Messages)
	for i := range twin.Messages {
		twin.Messages[i].Payload = bytes.Clone(twin.Messages[i].Payload)
	}
	return &twin
}

// send commits a clone and copies the fields that the store sets to c. The store must set no
// other field. It must have copied the messages, whose bytes send changes.
func send(ctx context.Context, store lifecycle.Store, c *lifecycle.Commit) error {
	sent := clone(c)
	if err := store.Commit(ctx, sent); err != nil {
		return err
	}
	for i := range c.Changes {
		to, set := &c.Changes[i].To, &sent.Changes[i].To
		to.Revision, to.ChangedAt, to.Deadline = set.Revision, set.ChangedAt, set.Deadline
		if d := difference(*to, *set); d != "" {
			return fmt.Errorf("the store has set another field (-want +got):\n%s", d)
		}
	}
	for _, m := range sent.Messages {
		clear(m.Payload)
	}
	return nil
}

// send commits by the next store.
func (t *tester) send(c *lifecycle.Commit) error { return send(t.Context(), t.store(), c) }

func (t *tester) get(k lifecycle.Key) lifecycle.StoredRecord {
	r, err := t.store().Get(t.Context(), k)
	require.NoError(t, err, "Get of %v", k)
	return r
}

func (t *tester) commit(c *lifecycle.Commit) {
	require.NoError(t, t.send(c), "Commit")
}

// write commits one change and returns the record with the fields that the store set.
func (t *tester) write(ch lifecycle.StoredChange) lifecycle.StoredRecord {
	c := commitOf(ch)
	t.commit(c)
	return c.Changes[0].To
}

func (t *tester) move(before lifecycle.StoredRecord, state string) lifecycle.StoredRecord {
	return t.write(change(before, state))
}

// put moves an object to a state, or creates it.
func (t *tester) put(id, state string) lifecycle.StoredRecord {
	return t.move(t.get(key(id)), state)
}

// remove removes an object and returns the record of its absence.
func (t *tester) remove(before lifecycle.StoredRecord) lifecycle.StoredRecord {
	t.write(removal(before))
	return t.get(before.Key)
}

// conflict requires that a commit is a conflict.
func (t *tester) conflict(c *lifecycle.Commit, why string) *lifecycle.ConflictError {
	var conflict *lifecycle.ConflictError
	require.ErrorAs(t, t.send(c), &conflict, why)
	return conflict
}

// equalFields compares as a caller does: nil equals empty, except for Saved. Bytes are compared
// as a whole, because cmp takes long for a megabyte.
var equalFields = cmp.Options{
	cmp.FilterPath(isSaved, cmp.Comparer(func(x, y []byte) bool { return bytes.Equal(x, y) && (x == nil) == (y == nil) })),
	cmp.FilterPath(func(p cmp.Path) bool { return !isSaved(p) }, cmp.Comparer(bytes.Equal)),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != reflect.TypeFor[[]byte]() }, cmpopts.EquateEmpty()),
}

func isSaved(p cmp.Path) bool { return p.Last().String() == ".Saved" }

// difference returns how two values differ for a caller, or an empty text.
func difference[T any](want, got T) string {
	if reflect.DeepEqual(want, got) { // as a rule; cmp.Diff takes much longer
		return ""
	}
	return cmp.Diff(want, got, equalFields)
}

// equal requires that two values are equal for a caller.
func equal[T any](t *tester, want, got T, what string) {
	if d := difference(want, got); d != "" {
		require.Fail(t, what+" differs (-want +got):\n"+d)
	}
}

// unchanged requires that Get of every store returns these records.
func (t *tester) unchanged(after string, records ...lifecycle.StoredRecord) {
	for _, store := range t.stores {
		for _, r := range records {
			got, err := store.Get(t.Context(), r.Key)
			require.NoError(t, err, "Get of %v", r.Key)
			equal(t, r, got, "the record of "+r.ID+" after "+after)
		}
	}
}

func (t *tester) list(q lifecycle.Query) []lifecycle.StoredRecord {
	if q.Limit == 0 {
		q.Limit = all
	}
	found, err := t.store().List(t.Context(), q)
	require.NoError(t, err, "List of %+v", q)
	return found
}

// finds requires that a query selects exactly these ids, in this order.
func (t *tester) finds(q lifecycle.Query, ids ...string) {
	equal(t, ids, idsOf(t.list(q)), fmt.Sprintf("the result of %+v", q))
}

func idsOf(records []lifecycle.StoredRecord) (ids []string) {
	for i := range records {
		ids = append(ids, records[i].ID)
	}
	return ids
}

// query selects the objects of the machine in any of these states.
func query(states ...string) lifecycle.Query {
	return lifecycle.Query{Machine: machine, States: states}
}

// rows returns the history of an object, or nothing for a store without history.
func (t *tester) rows(k lifecycle.Key, after uint64, limit int) []lifecycle.HistoryRow {
	if !t.has.History {
		return nil
	}
	rows, err := t.store().(lifecycle.Historian).History(t.Context(), k, after, limit)
	require.NoError(t, err, "History of %v", k)
	return rows
}

// oldest returns the oldest messages, or nothing for a store without an outbox.
func (t *tester) oldest(limit int) []lifecycle.OutboxMessage {
	if !t.has.Messages {
		return nil
	}
	list, err := t.store().(lifecycle.Outbox).Messages(t.Context(), limit)
	require.NoError(t, err, "Messages")
	return list
}

func (t *tester) discard(numbers ...uint64) {
	require.NoError(t, t.store().(lifecycle.Outbox).Discard(t.Context(), numbers...), "Discard of %d numbers", len(numbers))
}

// outbox requires that these are the oldest messages, each with a number of its own, and
// returns the numbers.
func (t *tester) outbox(limit int, want []lifecycle.Message, after string) (numbers []uint64) {
	var got []lifecycle.Message
	for _, m := range t.oldest(limit) {
		require.NotContains(t, numbers, m.Number, "two messages have one number")
		got, numbers = append(got, m.Message), append(numbers, m.Number)
	}
	equal(t, want, got, "the outbox after "+after)
	return numbers
}

// messages returns messages for a commit, or none for a store without an outbox.
func (t *tester) messages(texts ...string) (list []lifecycle.Message) {
	for _, text := range texts {
		if t.has.Messages {
			list = append(list, lifecycle.Message{Topic: "topic of " + text, Key: "key/ü", Payload: []byte(text + "\x00\xff")})
		}
	}
	return list
}

// callerTB is the test for a goroutine of its own: FailNow ends that goroutine.
type callerTB struct{ testing.TB }

func (t callerTB) FailNow() {
	t.Fail()
	runtime.Goexit()
}

// together runs n calls that start at the same moment, each with a tester of its own. It repeats
// others until those have returned, and then once more. The test ends here if one of them has
// failed.
func (t *tester) together(n int, call func(t *tester, i int), meanwhile ...func(t *tester)) {
	caller := *t
	caller.TB = callerTB{t.TB}
	start := make(chan struct{})
	var calls, others sync.WaitGroup
	var returned atomic.Bool
	for i := range n {
		calls.Go(func() {
			<-start
			call(&caller, i)
		})
	}
	for _, other := range meanwhile {
		others.Go(func() {
			for last := false; !last; {
				last = returned.Load()
				other(&caller)
			}
		})
	}
	close(start)
	calls.Wait()
	returned.Store(true)
	others.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// eventually repeats a call until it succeeds.
func (t *tester) eventually(what string, call func() error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(end), "%s still fails: %v", what, err)
	}
}

// repeat requires that a commit that is sent again has the same results, although it has others in
// the fields that the store sets.
func (t *tester) repeat(c *lifecycle.Commit, when string) {
	again := clone(c)
	for i := range again.Changes {
		to := &again.Changes[i].To
		to.Revision, to.ChangedAt, to.Deadline = "", wrong, wrong
	}
	require.NoError(t, t.send(again), "a commit that was sent again %s", when)
	equal(t, c.Changes, again.Changes, "the result of a commit that was sent again "+when)
}
