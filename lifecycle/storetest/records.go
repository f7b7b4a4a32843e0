package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var recordDemands = []demand{
	{name: "Get/results_are_not_overwritten", check: resultsAreNotOverwritten},
}

// The bytes of a payload that Get, List or a conflict returned never change.
func resultsAreNotOverwritten(t *tester) {
	var held, copies [][]byte
	hold := func(r lifecycle.StoredRecord) {
		held = append(held, r.Payload, r.Saved)
		copies = append(copies, bytes.Clone(r.Payload), bytes.Clone(r.Saved))
	}
	outdated := t.get(key("a"))
	for round := range 5 {
		for _, id := range []string{"a", "b"} {
			ch := change(t.get(key(id)), moving)
			ch.To.Payload, ch.To.Saved = fmt.Append(nil, "payload ", round, id), fmt.Append(nil, "saved ", round, id)
			t.write(ch)
			hold(t.get(key(id)))
		}
		for _, r := range t.list(query()) {
			hold(r)
		}
		hold(t.conflict(commitOf(change(outdated, idle)), "an outdated revision").Current)
	}
	require.Equal(t, copies, held)
}

var nameDemands = []demand{
	{name: "Names/any_id", check: anyID},
	{name: "Names/any_state", check: anyState},
	{name: "Names/any_machine", check: anyMachine},
	{name: "Names/nul_is_refused_or_kept", check: nulIsRefusedOrKept},
	{name: "Names/sizes", check: sizesOfFields},
}

// names are texts that quoting, collations, patterns and paths confuse.
func names() []string {
	long := strings.Repeat("x", 254)
	return []string{
		"a", "A", "a ", " a", "a  ", "a\t", "a b", "a\nb", "a\r\n",
		"/", "a/b", "a/", "/a", "a//b", "../a", ".", "..", "a.b", "a.", ".a", "a:b", "a|b", "a,b", "a;b",
		"*", "a*", ">", "a.>", "?", "%", "a%", "_", "a_", "[a]", "[^a]", "{a}", "$a", "#", "~", "^a$",
		"&", "=", "+", "%61", "&amp;",
		"'", "''", "\"", "`", "\\", "a\\", "\\x61", "';--", "' OR '1'='1", "a'b", "$$", "NULL", "null", "true",
		"0", "00", "1", "1.0", "-1", "1e1", "10",
		"é", "e\u0301", "É", "ß", "ss", "SS", "ı", "i", "I", "İ", "K", "\u212a", "ﬁ", "fi", "Ω", "ω", "日本語", "☂", "👷🏽",
		"\u200b", "a\u200b", "\u202eb", "\ufeffa", "\u00a0", "\uffff", "\U0010ffff",
		long + "x", long + "y", long, strings.Repeat("é", 127), strings.Repeat("👷", 63),
	}
}

// Every id of 1 to 255 bytes of UTF-8 without NUL names an object of its own. Ids
// that differ in case, in a trailing blank, in the last byte or in composition differ.
// Ids are in order of their bytes, and every one can be After.
func anyID(t *tester) {
	ids := slices.Sorted(slices.Values(names()))
	var records []lifecycle.StoredRecord
	for i, id := range names() {
		before := t.get(key(id))
		require.False(t, before.Exists(), "%q exists before it was created", id)
		ch := change(before, idle)
		ch.To.Payload = fmt.Append(nil, "payload ", i)
		records = append(records, t.write(ch))
	}
	t.unchanged("the creation of others", records...)
	t.finds(query(), ids...)
	for i, id := range ids {
		q := query()
		q.After, q.Limit = id, 3
		t.finds(q, ids[i+1:min(i+4, len(ids))]...)
		if t.has.History {
			require.Len(t, t.rows(key(id), 0, all), 1, "the history of %q", id)
		}
	}
	t.remove(t.get(key(ids[0])))
	t.finds(query(), ids[1:]...)
}

// The same holds for states in records, expectations, preconditions and queries.
func anyState(t *tester) {
	states := names()
	for i, state := range states {
		id, other := fmt.Sprint("object", i), states[(i+1)%len(states)]
		r := t.put(id, state)
		t.finds(query(state), id)
		wrong := change(r, idle)
		wrong.From = other
		conflict := t.conflict(commitOf(wrong), "state "+other+" instead of "+state)
		require.Equal(t, state, conflict.Current.State)
		if t.has.Changes >= 2 {
			c := commitOf(change(t.get(key("another")), "Another state"))
			c.Require = []lifecycle.Precondition{{Key: r.Key, States: []string{other}}}
			require.ErrorIs(t, send(t.Context(), t.store, c), lifecycle.ErrPrecondition, "%q instead of %q", other, state)
			c.Require[0].States = []string{other, state}
			t.commit(c)
		}
		moved := t.move(r, other)
		if rows := t.rows(r.Key, r.Sequence, all); t.has.History {
			require.Len(t, rows, 1)
			require.Equal(t, []string{state, other}, []string{rows[0].From, rows[0].To})
		}
		t.move(moved, state)
	}
}

// The same holds for machines. Machine and id together never name an object of
// another machine, and two machines with the same id have two objects.
func anyMachine(t *tester) {
	var keys []lifecycle.Key
	for _, name := range append(names(), "cran", "crane", "cranes", "Crane") {
		keys = append(keys, lifecycle.Key{Machine: name, ID: "a"})
	}
	for _, sep := range []string{"/", ".", ":", " ", "-", "_", "|", ",", "\x1f", "\t", "#", ""} {
		keys = append(keys,
			lifecycle.Key{Machine: "m" + sep + "x", ID: "y" + sep + "z"},
			lifecycle.Key{Machine: "m", ID: "x" + sep + "y" + sep + "z"},
			lifecycle.Key{Machine: "m" + sep + "x" + sep + "y", ID: "z"})
	}
	ids := map[string][]string{}
	var records []lifecycle.StoredRecord
	for _, k := range keys {
		before := t.get(k)
		require.False(t, before.Exists(), "%q %q exists before it was created", k.Machine, k.ID)
		records = append(records, t.move(before, idle))
		ids[k.Machine] = append(ids[k.Machine], k.ID)
	}
	t.unchanged("the creation of others", records...)
	for name, list := range ids {
		slices.Sort(list)
		t.finds(lifecycle.Query{Machine: name}, list...)
	}
	t.finds(lifecycle.Query{Machine: "crane%"})
	t.remove(t.move(records[0], moving))
	t.unchanged("the changes of another machine's object", records[1:]...)
	if t.has.History {
		require.Len(t, t.rows(records[1].Key, 0, all), 1)
	}
}

// A store refuses ids with NUL with ErrInvalid, or keeps them as they are: no call
// about such an id is about another object.
func nulIsRefusedOrKept(t *tester) {
	a := t.put("a", idle)
	kept := []string{"a"}
	for _, id := range []string{"a\x00", "a\x00b", "\x00a", "\x00"} {
		before, err := t.store.Get(t.Context(), key(id))
		if err == nil {
			require.False(t, before.Exists(), "%q exists before it was created", id)
			t.move(before, moving)
			kept = append(kept, id)
			continue
		}
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "Get of %q", id)
		before = t.get(key("absent"))
		before.Key = key(id)
		require.ErrorIs(t, send(t.Context(), t.store, commitOf(change(before, idle))), lifecycle.ErrInvalid, "a creation of %q", id)
	}
	t.unchanged("calls with NUL in the id", a)
	slices.Sort(kept)
	t.finds(query(), kept...)
}

// Payloads, arguments, work options and messages are kept at the sizes where columns
// end: one byte less, exactly, and one byte more than 255 bytes and 64 KiB. A payload
// of 1 MiB and a reason of 8 KiB are kept.
func sizesOfFields(t *tester) {
	r := t.get(key("a"))
	var messages []lifecycle.Message
	for _, size := range []int{254, 255, 256, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		data := randomBytes(size)
		ch := change(r, moving)
		ch.To.Payload, ch.To.Reason = data, strings.Repeat("ü", min(size, 8<<10)/2)
		if size < 1<<20 {
			ch.To.Saved, ch.To.Args, ch.To.WorkOptions = data, data, data
		}
		c := commitOf(ch)
		if t.has.Messages && size < 1<<20 {
			c.Messages = []lifecycle.Message{{Topic: "t", Payload: data}}
		}
		t.commit(c)
		r, messages = c.Changes[0].To, append(messages, c.Messages...)
		what := fmt.Sprintf("a commit of %d bytes", size)
		t.unchanged(what, r)
		equal(t, []lifecycle.StoredRecord{r}, t.list(query()), "the list after "+what)
		if rows := t.rows(r.Key, r.Sequence-1, all); t.has.History {
			require.Len(t, rows, 1)
			require.Equal(t, r.Reason, rows[0].Reason)
		}
	}
	t.outbox(messages, "big commits")
}

// randomBytes does not compress.
func randomBytes(n int) []byte {
	data := make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}
