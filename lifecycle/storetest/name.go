package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

func nameDemands() []demand {
	return []demand{
		{
			name: "Names/hostile_ids", run: hostileIDs,
			says: "Any id of 1 to 255 bytes of UTF-8 without NUL names an object of its own: blanks, slashes, wildcards, quotes, other scripts; ids that differ in case, in a trailing blank, in the last of 255 bytes or in composition are different.",
		},
		{
			name: "Names/hostile_states", run: hostileStates,
			says: "The same goes for the names of states, in records, conditions and queries.",
		},
		{
			name: "Names/hostile_machines", run: hostileMachines,
			says: "The same goes for the names of machines; machine and id together never name another object's machine and id.",
		},
		{
			name: "Names/machines_do_not_see_each_other", run: machinesApart,
			says: "Objects of two machines with one id are two objects: with records, numbers and history of their own.",
		},
		{
			name: "Names/big_payload", run: bigPayload,
			says: "A payload of 1 MiB is kept, by itself, and read and listed.",
		},
		{
			name: "Names/big_fields", run: bigFields,
			says: "Payloads, saved payloads, arguments, steps and messages are kept at the sizes where columns end: 255 bytes and 64 KiB, one byte less and one more; and so is a reason of 8 KiB.",
		},
	}
}

// hostile are names that somebody's quoting, collation, pattern or path takes
// for something else.
func hostile() []string {
	long := strings.Repeat("x", 254)
	return []string{
		"a", "A", "a ", " a", "a  ", "a\t", "a b", "a\nb", "a\r\n",
		"/", "a/b", "a/", "/a", "a//b", "../a", ".", "..", "a.b", "a.", ".a", "a:b", "a|b", "a,b", "a;b",
		"*", "a*", ">", "a.>", "?", "%", "a%", "_", "a_", "[a]", "[^a]", "{a}", "$a", "#", "~", "^a$", "&", "=", "+", "%61", "&amp;",
		"'", "''", "\"", "`", "\\", "a\\", "\\x61", "';--", "' OR '1'='1", "a'b", "$$", "NULL", "null", "true", "0", "00", "1", "1.0", "-1", "1e1", "10",
		"é", "e\u0301", "É", "ß", "ss", "SS", "ı", "i", "I", "İ", "K", "\u212a", "ﬁ", "fi", "Ω", "ω", "日本語", "☂", "👷🏽", "\u200b", "a\u200b", "\u202eb", "\ufeffa", "\u00a0", "\uffff", "\U0010ffff",
		long + "x", long + "y", long, strings.Repeat("é", 127), strings.Repeat("👷", 63),
	}
}

func hostileIDs(t *trial) {
	ids := hostile()
	for i, id := range ids {
		if r := t.get(key(id)); r.Exists() {
			t.Fatalf("%q exists before it was made: it is %s", id, in(&r))
		}
		ch := change(t.get(key(id)), idle)
		ch.To.Payload = []byte(fmt.Sprint("payload ", i))
		r := t.write(ch)
		same(t, "object "+show(id), t.get(key(id)), r)
	}
	sorted := slices.Sorted(slices.Values(ids))
	t.found(lifecycle.Query{Machine: machine}, sorted...)
	for i, id := range ids {
		if r := t.get(key(id)); string(r.Payload) != fmt.Sprint("payload ", i) {
			t.Fatalf("object %q has %q, not payload %d", id, r.Payload, i)
		}
		if t.store.Capabilities().History {
			if rows := t.history(key(id), 0, all); len(rows) != 1 || rows[0].ID != id {
				t.Fatalf("object %q has %d rows, not one of its own", id, len(rows))
			}
		}
	}
	for len(sorted) > 0 { // in pages of three: every id is once the border
		t.found(lifecycle.Query{Machine: machine, Limit: 3}, sorted[:min(3, len(sorted))]...)
		t.found(lifecycle.Query{Machine: machine, After: sorted[0], Limit: 3}, sorted[1:min(4, len(sorted))]...)
		t.remove(t.get(key(sorted[0])))
		sorted = sorted[1:]
	}
}

func hostileStates(t *trial) {
	states := hostile()
	for i, state := range states {
		t.put(key(fmt.Sprintf("o%03d", i)), state)
	}
	for i, state := range states {
		id := fmt.Sprintf("o%03d", i)
		t.found(lifecycle.Query{Machine: machine, States: []string{state}}, id)
		r := t.get(key(id))
		other := states[(i+1)%len(states)]
		wrong := change(r, idle)
		wrong.From = other
		conflict := t.refused(commitOf(wrong), "state "+show(other)+" instead of "+show(state))
		if conflict.Current.State != state {
			t.Errorf("the conflict says %q, the state is %q", conflict.Current.State, state)
		}
		if t.store.Capabilities().Changes >= 2 {
			p := lifecycle.Precondition{Key: r.Key, States: []string{other}}
			witness := t.get(key("~witness"))
			t.unmet(t.requires(witness, p), p, r)
			p.States = []string{other, state}
			if err := t.requires(witness, p); err != nil {
				t.Errorf("a commit that requires state %q: %v", state, err)
			}
			t.remove(t.get(witness.Key))
		}
		if t.store.Capabilities().History {
			c := commitOf(change(r, other))
			t.commit(c)
			rows := t.history(r.Key, r.Sequence, all)
			if len(rows) != 1 || rows[0].From != state || rows[0].To != other {
				t.Errorf("the rows of a move from %q to %q are %q", state, other, rows)
			}
			t.move(c.Changes[0].To, state)
		}
	}
}

func hostileMachines(t *trial) {
	var keys []lifecycle.Key
	for _, name := range hostile() {
		keys = append(keys, lifecycle.Key{Machine: name, ID: "a"})
	}
	// Pairs that are one when they are put together, with whatever between.
	for _, between := range []string{"/", ".", ":", " ", "-", "_", "|", ",", "\x1f", "\t", "#"} {
		keys = append(keys,
			lifecycle.Key{Machine: "m" + between + "x", ID: "y" + between + "z"},
			lifecycle.Key{Machine: "m", ID: "x" + between + "y" + between + "z"},
			lifecycle.Key{Machine: "m" + between + "x" + between + "y", ID: "z"})
	}
	keys = append(keys, lifecycle.Key{Machine: "pq", ID: "r"}, lifecycle.Key{Machine: "p", ID: "qr"})
	of := map[string][]string{}
	for _, k := range keys {
		if r := t.get(k); r.Exists() {
			t.Fatalf("%q of %q exists before it was made: it is %s", k.ID, k.Machine, in(&r))
		}
		same(t, "the first record of "+show(k), t.put(k, idle), t.get(k))
		of[k.Machine] = append(of[k.Machine], k.ID)
	}
	for name, ids := range of {
		slices.Sort(ids)
		t.found(lifecycle.Query{Machine: name}, ids...)
	}
}

func machinesApart(t *trial) {
	crane, truck := key("a"), lifecycle.Key{Machine: "truck", ID: "a"}
	absent := t.get(truck)
	c := t.move(t.put(crane, idle), moving)
	t.stays("commits to another machine's object", absent)
	r := t.move(absent, broken)
	c = t.move(c, idle)
	t.stays("commits to another machine's object", c, r)
	if t.store.Capabilities().History {
		if rows := t.history(truck, 0, all); len(rows) != 1 {
			t.Errorf("of one commit there are %d rows", len(rows))
		}
	}
	t.remove(c)
	t.stays("the removal of another machine's object", r)
}

func bigPayload(t *trial) {
	payload := noise(1 << 20)
	small := t.put(key("a"), idle)
	ch := change(t.get(key("b")), moving)
	ch.To.Payload = []byte(payload)
	big := t.write(ch)
	t.stays("a commit with a big payload", big, small)
	found := t.list(lifecycle.Query{Machine: machine})
	if len(found) != 2 {
		t.Fatalf("of 2 objects %d are listed", len(found))
	}
	same(t, "the listed record with a big payload", found[1], big)
	big = t.move(big, idle)
	t.stays("a commit that replaces a big payload", big, small)
}

// noise is bytes that do not compress.
func noise(n int) []byte {
	data := make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func bigFields(t *trial) {
	r := t.get(key("a"))
	var said []lifecycle.Message
	for _, size := range []int{254, 255, 256, 1<<16 - 1, 1 << 16, 1<<16 + 1} {
		data := noise(size)
		for field, set := range map[string]func(*lifecycle.StoredRecord){
			"the payload":       func(r *lifecycle.StoredRecord) { r.Payload = []byte(data) },
			"the saved payload": func(r *lifecycle.StoredRecord) { r.Saved = []byte(data) },
			"the arguments":     func(r *lifecycle.StoredRecord) { r.Args = data },
			"the work options":  func(r *lifecycle.StoredRecord) { r.WorkOptions = data },
			"the reason":        func(r *lifecycle.StoredRecord) { r.Reason = strings.Repeat("ü", min(size, 8<<10)/2) },
		} {
			ch := change(r, moving)
			set(&ch.To)
			r = t.write(ch)
			same(t, fmt.Sprintf("a record with %d bytes in %s", size, field), t.get(r.Key), r)
			if t.store.Capabilities().History {
				rows := t.history(r.Key, r.Sequence-1, all)
				if len(rows) != 1 || rows[0].Reason != r.Reason {
					t.Fatalf("the row of a change with %d bytes in %s has not its reason", size, field)
				}
			}
		}
		if t.store.Capabilities().Messages {
			c := commitOf(change(r, idle))
			c.Messages = []lifecycle.Message{{Topic: "t", Payload: data}}
			t.commit(c)
			r, said = c.Changes[0].To, append(said, c.Messages...)
		}
	}
	t.toldAll(said)
}
