package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

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

// Every id of 1 to 255 bytes of UTF-8 without NUL names an object of its own, and so does every
// such name of a machine; machine and id together never name an object of another machine. Names
// that differ in case, in a trailing blank, in the last byte or in composition differ. Ids are in
// order of their bytes, and every one can be After. The same holds for states in records,
// histories, expectations, preconditions and queries.
func anyName(t *tester) {
	var keys []lifecycle.Key
	for _, name := range append(names(), "cran", "Crane", "cranes") {
		keys = append(keys, key(name), lifecycle.Key{Machine: name, ID: "a"})
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
		records = append(records, t.move(t.get(k), k.ID))
		ids[k.Machine] = append(ids[k.Machine], k.ID)
	}
	t.unchanged("the creation of others", records...)
	for _, k := range keys {
		if rows := t.rows(k, 0, all); t.has.History {
			require.Len(t, rows, 1, "the history of %q of machine %q", k.ID, k.Machine)
			require.Equal(t, k.ID, rows[0].To)
		}
	}
	for name, list := range ids {
		slices.Sort(list)
		t.finds(lifecycle.Query{Machine: name}, list...)
	}
	t.finds(lifecycle.Query{Machine: "crane%"})
	list := ids[machine]
	for i, id := range list {
		q := query()
		q.After, q.Limit = id, 3
		t.finds(q, list[i+1:min(i+4, len(list))]...)
		t.finds(query(id), id)
		other, wrong := list[(i+1)%len(list)], change(t.get(key(id)), idle)
		wrong.From = other
		conflict := t.conflict(commitOf(wrong), "state "+other+" instead of "+id)
		require.Equal(t, id, conflict.Current.State, "the state of the current record in the conflict")
		if t.has.Changes >= 2 {
			c := commitOf(change(t.get(lifecycle.Key{Machine: "another", ID: "a"}), idle))
			c.Require = []lifecycle.Precondition{{Key: key(id), States: []string{other}}}
			require.ErrorIs(t, t.send(c), lifecycle.ErrPrecondition, "%q instead of %q", other, id)
			c.Require[0].States = []string{other, id}
			t.commit(c)
		}
	}
	t.remove(t.move(records[0], moving))
	t.unchanged("the changes of another object", records[1:]...)
}

// A store refuses ids with NUL with ErrInvalid, or keeps them as they are: no call
// about such an id is about another object.
func nulIsRefusedOrKept(t *tester) {
	a, never := t.put("a", idle), t.get(key("never"))
	kept := []string{"a"}
	for _, id := range []string{"a\x00", "a\x00b", "\x00a", "\x00"} {
		_, err := t.store().Get(t.Context(), key(id))
		if err == nil {
			t.put(id, moving)
			kept = append(kept, id)
			continue
		}
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "Get of %q", id)
		never.ID = id
		require.ErrorIs(t, t.send(commitOf(change(never, idle))), lifecycle.ErrInvalid, "a creation of %q", id)
	}
	t.unchanged("calls with NUL in the id", a)
	slices.Sort(kept)
	t.finds(query(), kept...)
}

// A page of List and of Recent is as long as its limit if there are enough objects, here the
// greatest limit of a Manager: a shorter page is the last one.
func sizesOfPages(t *tester) {
	many, batch := lifecycle.MaxPage+1, min(100, t.has.Changes)
	for n := 0; n < many; n += batch {
		c := commitOf()
		for i := n; i < min(n+batch, many); i++ {
			c.Changes = append(c.Changes, change(t.get(key(fmt.Sprintf("%04d", i))), idle))
		}
		t.commit(c)
	}
	last := fmt.Sprintf("%04d", many-1)
	q := query()
	q.Limit = lifecycle.MaxPage
	page := t.list(q)
	require.Equal(t, q.Limit, len(page), "the length of a page of List: %d objects match, and a page below its limit is the last one", many)
	q.After = page[q.Limit-1].ID
	t.finds(q, last)
	if !t.follows() {
		return
	}
	changes, err := t.store().(lifecycle.Follower).Recent(t.Context(), machine, hour, "", q.Limit)
	require.NoError(t, err)
	require.Equal(t, q.Limit, len(changes), "the length of a page of Recent: %d objects match, and a page below its limit is the last one", many)
}

// Payloads, arguments, work options and messages are kept at the sizes where columns
// end: one byte less, exactly, and one byte more than 255 bytes and 64 KiB. A payload
// of 1 MiB and a reason of 8 KiB are kept.
func sizesOfFields(t *tester) {
	r := t.get(key("a"))
	random := rand.NewChaCha8([32]byte{}) // its bytes do not compress
	var messages []lifecycle.Message
	for _, size := range []int{254, 255, 256, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		data := make([]byte, size)
		_, _ = random.Read(data) // never fails
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
		if t.has.History {
			equal(t, []lifecycle.HistoryRow{c.Changes[0].Row(c.Token)}, t.rows(r.Key, r.Sequence-1, all), "the history after "+what)
		}
	}
	t.outbox(all, messages, "big commits")
}
