package storetest

import (
	"bytes"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

func getDemands() []demand {
	return []demand{
		{
			name: "Get/absent_is_no_error", run: absentIsNoError,
			says: "An object that does not exist is no error but a record with its key and without a state, and the same record every time.",
		},
		{
			name: "Get/returns_what_was_written", run: returnsWhatWasWritten,
			says: "Every field of a record comes back as it was committed, also after other objects were written.",
		},
		{
			name: "Get/keeps_payloads", run: keepsPayloads,
			says: "Payloads come back byte by byte. An empty Saved payload comes back as empty, a nil one as nil.",
		},
		{
			name: "Get/payloads_are_not_overwritten", run: payloadsAreNotOverwritten,
			says: "The bytes of a payload that was returned stay what they are, whatever is called later.",
		},
		{
			name: "Get/absent_again_after_removal", run: absentAfterRemoval,
			says: "A removed object is absent: without state, origin, target, owner, work, deadline and payloads; its event and actor are those that removed it, or unknown.",
		},
		{
			name: "Get/sees_every_acknowledged_commit", run: seesEveryCommit,
			says: "A read that begins after a commit was acknowledged sees it.",
		},
	}
}

func absentIsNoError(t *trial) {
	r := t.get(key("a"))
	if r.Exists() {
		t.Errorf("in an empty store the object is %s", in(&r))
	}
	if r.Key != key("a") {
		t.Errorf("the record is of %+v, not of %+v", r.Key, key("a"))
	}
	same(t, "the same absent object", t.get(key("a")), r)
}

// full is a record with something particular in every field that is the caller's.
func full(k lifecycle.Key) lifecycle.StoredRecord {
	return lifecycle.StoredRecord{
		Key: k, State: "Being moved", Origin: "Held; \"high\"", Target: "Höhe ist 7'", Sequence: 1, Operation: 1<<60 + 1,
		Owner: "process/1\\%s", Epoch: 1<<62 + 3, // not a float64
		Work: "lift: \"high\"", Args: []byte("\x00\xff 'bytes'"), WorkOptions: []byte("[1, 2]"),
		Actor: "the user", Event: "lift — slowly",
		Reason:  "line one\nline \"two\", 50% of it's\ttabbed: ☂ 🏗",
		Payload: []byte(`{"load":[1,2,3]}`), Saved: []byte(`{"load":null}`),
	}
}

func returnsWhatWasWritten(t *trial) {
	first := t.get(key("a"))
	to := full(first.Key)
	to.Sequence = first.Sequence + 1
	to.Operation += first.Operation
	written := t.write(lifecycle.StoredChange{Expect: first.Revision, To: to, Timeout: hour})
	same(t, "a record with all fields", t.get(to.Key), written)

	// And with none: what is empty now was not before.
	bare := lifecycle.StoredRecord{
		Key: to.Key, State: idle, Origin: idle, Sequence: to.Sequence + 1, Operation: to.Operation, Actor: "a",
	}
	bare = t.write(lifecycle.StoredChange{Expect: written.Revision, From: to.State, FromOrigin: to.Origin, To: bare})
	same(t, "a record with few fields", t.get(bare.Key), bare)

	other := t.put(key("b"), moving)
	same(t, "after a commit of another object", t.get(bare.Key), bare)
	same(t, "the other object", t.get(other.Key), other)
}

func keepsPayloads(t *trial) {
	bytes256 := make([]byte, 256)
	for i := range bytes256 {
		bytes256[i] = byte(i)
	}
	none, empty := []byte(nil), []byte{}
	r := t.get(key("a"))
	for _, c := range []struct {
		name           string
		payload, saved []byte
	}{
		{"no payloads", none, none},
		{"text", []byte(`{"a": 1,  "b":"x"}`), none}, // two blanks stay two
		{"every byte", []byte(bytes256), []byte(bytes256)},
		{"nothing, and saved nothing", empty, empty},
		{"nil, and saved nothing", none, empty},
		{"no payloads again", none, none},
	} {
		ch := change(r, moving)
		ch.To.Payload, ch.To.Saved = c.payload, c.saved
		r = t.write(ch)
		same(t, c.name, t.get(r.Key), r)
	}
}

func payloadsAreNotOverwritten(t *trial) {
	type held struct {
		from string
		got  []byte
		want []byte
	}
	var all []held
	hold := func(from string, r lifecycle.StoredRecord) {
		for _, p := range [][]byte{r.Payload, r.Saved} {
			if p != nil {
				all = append(all, held{fmt.Sprintf("%s of #%d", from, r.Sequence), p, bytes.Clone(p)})
			}
		}
	}
	outdated := t.get(key("a"))
	for round := range 5 {
		for _, id := range []string{"a", "b"} {
			r := t.get(key(id))
			ch := change(r, moving)
			ch.To.Payload = []byte(fmt.Sprintf("payload %d of %s", round, id))
			ch.To.Saved = []byte(fmt.Sprintf("saved %d of %s", round, id))
			t.write(ch)
			hold("Get", t.get(key(id)))
		}
		for _, r := range t.list(lifecycle.Query{Machine: machine}) {
			hold("List", r)
		}
		hold("a conflict", t.refused(commitOf(change(outdated, idle)), "an outdated revision").Current)
	}
	for _, h := range all {
		if !bytes.Equal(h.got, h.want) {
			t.Fatalf("a payload from %s was %q and is %q now", h.from, h.want, h.got)
		}
	}
}

func absentAfterRemoval(t *trial) {
	ch := change(t.get(key("a")), moving)
	ch.To.Target, ch.To.Saved, ch.Timeout = broken, []byte("saved"), hour
	ch.To.Owner, ch.To.Epoch, ch.To.Work = "one", 1, "lift"
	r := t.write(ch)
	ch = removal(r)
	ch.To.Actor, ch.To.Event = "remover", "take away"
	ch.To.Owner, ch.To.Epoch, ch.To.Work = "one", 1, "lift"
	t.write(ch)

	left := t.get(key("a"))
	if left.Exists() || left.Key != key("a") {
		t.Errorf("after its removal the object is %s", in(&left))
	}
	if left.Origin != "" || left.Target != "" || len(left.Payload) > 0 || left.Saved != nil || !left.Deadline.IsZero() ||
		left.Owner != "" || left.Epoch != 0 || left.Work != "" {
		t.Errorf("of a removed object there is left: %+v", left)
	}
	if left.Actor != "" && left.Actor != "remover" || left.Event != "" && left.Event != "take away" {
		t.Errorf("the object was removed by remover with %q, the record says by %s with %q", "take away", left.Actor, left.Event)
	}
	if found := t.ids(lifecycle.Query{Machine: machine}); len(found) > 0 {
		t.Errorf("after its removal the object is still listed: %q", found)
	}
}

func seesEveryCommit(t *trial) {
	r := t.put(key("a"), idle)
	for i := range 50 {
		r = t.move(r, []string{idle, moving, broken}[i%3])
		if got := t.get(r.Key); got.Revision != r.Revision || got.State != r.State {
			t.Fatalf("the object is %s, Get says %s", in(&r), in(&got))
		}
	}
}
