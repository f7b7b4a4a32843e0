package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func networkDemands() []demand {
	cut := func(place Place) func(t *trial) { return func(t *trial) { t.cutCommits(place) } }
	return []demand{
		{
			name: "Network/cut_before_a_request", run: cut(BeforeRequest), needs: needThrough,
			says: "Where the connection is cut before any one of the requests of a commit, the store says truly whether it was written, or ErrUnknownOutcome; it is never a conflict, and the next call finds another connection.",
		},
		{
			name: "Network/cut_in_a_request", run: cut(InRequest), needs: needThrough,
			says: "So it is where the engine gets only a part of the request.",
		},
		{
			name: "Network/lost_answers", run: cut(AfterRequest), needs: needThrough,
			says: "So it is where the engine has done what it was asked, and its answer is lost.",
		},
		{
			name: "Network/cut_in_an_answer", run: cut(InAnswer), needs: needThrough,
			says: "So it is where half of the answer arrives; what is acknowledged is filled as it was written.",
		},
		{
			name: "Network/reads_are_right_or_fail", run: cutReads, needs: needThrough,
			says: "A read whose connection is cut at any place returns what is there, or an error; never less, nor an object that is absent for want of an answer.",
		},
		{
			name: "Network/contexts_end_at_every_request", run: contextsAtRequests, needs: needThrough,
			says: "A commit whose context ends while any one of its requests, or the answer, is held up returns before that goes on. What it says stays true when the request arrives late.",
		},
		{
			name: "Network/comes_back", run: comesBack, needs: needThrough,
			says: "While there is no connection every call fails, without ErrClosed; when there is one again the same store goes on.",
		},
		{
			name: "Network/cuts_under_load_are_exact", run: cutsUnderLoad, needs: needThrough | needHistory,
			says: "Where connections of many goroutines are cut at random, what they were told agrees on one order, and every commit in the history is one of theirs: none lost, none twice, no conflict with oneself.",
		},
	}
}

// mostRequests is more than any commit needs.
const mostRequests = 200

// through replaces the store by one behind a proxy.
func (t *trial) through() *Proxy {
	t.Helper()
	p := NewProxy(t.TB)
	if t.store = t.h.Through(t.TB, p); t.store == nil {
		t.Fatal("storetest: Through of the harness returned no store")
	}
	closeLater(t.TB, t.store)
	return p
}

// pair is the commit that cuts are tried on: of two objects if the store can,
// which it creates, moves and removes in turn.
func (t *trial) pair(n int, were []lifecycle.StoredRecord) *lifecycle.Commit {
	c := commitOf()
	for i := range were {
		ch := change(were[i], []string{idle, moving}[n%2])
		if n%4 == 3 && were[i].Exists() {
			ch = removal(were[i])
		}
		ch.To.Reason = fmt.Sprint("try ", n)
		c.Changes = append(c.Changes, ch)
	}
	if t.store.Capabilities().Messages {
		c.Messages = []lifecycle.Message{{Topic: "t", Payload: fmt.Append(nil, "try ", n)}}
	}
	return c
}

func (t *trial) pairs() []lifecycle.StoredRecord {
	t.Helper()
	were := []lifecycle.StoredRecord{t.put(key("a"), idle)}
	if t.store.Capabilities().Changes > 1 {
		were = append(were, t.get(key("b")))
	}
	return were
}

// toldAll demands the messages of the commits that were written, each once.
func (t *trial) toldAll(want []lifecycle.Message) {
	t.Helper()
	if t.store.Capabilities().Messages {
		t.told(t.messages(all), want)
	}
}

// cutCommits cuts the connection at one place of every request of a commit.
func (t *trial) cutCommits(place Place) {
	p := t.through()
	were := t.pairs()
	var said []lifecycle.Message
	points := 0
	for n, missed := 1, 0; missed < 4; n++ { // creation, moves and removal differ
		if n > mostRequests {
			t.Fatalf("a commit has more than %d requests", mostRequests)
		}
		for kind := range 4 {
			c := t.pair(kind, were)
			p.Cut(place, n)
			err := send(t.Context(), t.store, c)
			struck := p.Struck()
			p.Cut(place, 0)
			if missed++; struck {
				missed = 0
				points++
			} else if err != nil {
				t.Fatalf("a commit whose connection is not cut: %v", err)
			}
			now, wrote := t.judge(c, err, were)
			if were = now; wrote {
				said = append(said, c.Messages...)
			}
		}
		if missed >= 4 && n == 1 {
			t.Fatal("no connection was cut: the store does not go through the proxy")
		}
	}
	t.toldAll(said)
	t.Logf("%d requests of commits were cut, %d commits were written nevertheless", points, len(said))
}

// cutReads cuts the connection at every place of every request of reads.
func cutReads(t *trial) {
	p := t.through()
	has := t.store.Capabilities()
	var want []lifecycle.StoredRecord
	for i := range 5 {
		k := key(fmt.Sprint("object", i))
		want = append(want, t.move(t.put(k, idle), moving))
	}
	var rows []lifecycle.HistoryRow
	if has.History {
		rows = t.history(want[0].Key, 0, all)
	}
	reads := map[string]func() (string, error){
		"Get": func() (string, error) {
			r, err := t.store.Get(t.Context(), want[0].Key)
			return differences(r, want[0]), err
		},
		"List": func() (string, error) {
			found, err := t.store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 10})
			return listDifferences(found, want), err
		},
		"History": func() (string, error) {
			if !has.History {
				return "", nil
			}
			got, err := t.store.(lifecycle.Historian).History(t.Context(), want[0].Key, 0, all)
			return listDifferences(got, rows), err
		},
	}
	for what, read := range reads {
		for place := range places {
			for n, struck := 1, true; struck; n++ {
				p.Cut(place, n)
				wrong, err := read()
				struck = p.Struck() && n < mostRequests
				p.Cut(place, 0)
				switch {
				case err == nil && wrong != "":
					t.Fatalf("%s, cut %v %d, gives: %s", what, place, n, wrong)
				case err != nil && !struck:
					t.Fatalf("%s whose connection is not cut: %v", what, err)
				}
				t.recover(what, func() error { _, err := read(); return err })
			}
		}
	}
}

// listDifferences says how two lists differ.
func listDifferences[T any](got, want []T) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d of %d", len(got), len(want))
	}
	for i := range got {
		if d := differences(got[i], want[i]); d != "" {
			return fmt.Sprintf("number %d: %s", i+1, d)
		}
	}
	return ""
}

// contextsAtRequests holds every request of a commit, and every answer, and ends
// the context meanwhile.
func contextsAtRequests(t *trial) {
	p := t.through()
	were := t.pairs()
	var said []lifecycle.Message
	cause := errors.New("storetest: the caller has gone")
	for _, place := range []Place{BeforeRequest, AfterRequest} {
		for n := 1; ; n++ {
			c := t.pair(n, were)
			ctx, cancel := context.WithCancelCause(t.Context())
			held := p.Hold(place, n)
			done := make(chan error, 1)
			go func() { done <- send(ctx, t.store, c) }() // ends before the loop goes on
			var err error
			stopped := false
			select {
			case <-held.Reached():
				stopped = true
				cancel(cause)
				late := time.NewTimer(min(t.patience, 20*time.Second))
				select {
				case err = <-done:
				case <-late.C:
					t.Errorf("a commit waits for its request %d although its context has ended", n)
				}
				late.Stop()
				held.Release()
				if t.Failed() {
					<-done
					return
				}
				t.wait("what was held to be settled", held.Settled())
			case err = <-done:
			}
			p.Cut(place, 0)
			cancel(nil)
			if err != nil && !stopped {
				t.Fatalf("a commit that is not held up: %v", err)
			}
			t.goneOr(err, ctx, cause, "Commit")
			now, wrote := t.judge(c, err, were)
			if were = now; wrote {
				said = append(said, c.Messages...)
			}
			if !stopped || n > mostRequests {
				break
			}
		}
	}
	t.toldAll(said)
}

func comesBack(t *trial) {
	p := t.through()
	r := t.put(key("a"), idle)
	for round := range 3 {
		p.Down()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a store may try for as long as it is given
		for what, err := range t.calls(ctx, r, 1) {
			if err == nil || errors.Is(err, lifecycle.ErrClosed) || errors.Is(err, lifecycle.ErrConflict) {
				t.Errorf("%s without a connection is to fail, and the store is not closed: %v", what, err)
			}
		}
		cancel()
		p.Up()
		if t.Failed() {
			return
		}
		t.recovered()
		t.stays("the connection came back", r)
		r = t.move(r, []string{moving, idle}[round%2])
	}
}

func cutsUnderLoad(t *trial) {
	p := t.through()
	t.exactUnder("cut connections", false, func(calls func(more func() bool)) {
		p.CutAtRandom(20, 1)
		calls(func() bool { return p.Cuts() < 10 }) // and none of them may wait for ever
		p.CutAtRandom(0, 0)
		t.Logf("connections were cut %d times", p.Cuts())
	})
}

// exactUnder lets many goroutines commit to a few objects while something goes
// wrong, which begins and ends in run, and demands that what they were told is
// what happened. Calls go on while more returns true, and for a while at least. An
// engine that loses its memory may have shown what it then loses.
func (t *trial) exactUnder(what string, loses bool, run func(calls func(more func() bool))) {
	t.Helper()
	const clients, objects = 8, 3
	first := make([]lifecycle.StoredRecord, objects)
	for n := range first {
		first[n] = t.put(key(fmt.Sprint("object", n)), idle)
	}
	var seen [][]observation
	run(func(more func() bool) { seen = t.observe(clients, objects, 2*t.attempts, more) })
	if t.Failed() {
		return
	}
	t.recovered()
	total := uint64(0)
	for n := range seen {
		last := t.get(first[n].Key)
		if loses {
			seen[n] = withoutEarly(first[n].Sequence, seen[n])
		}
		seen[n] = append(seen[n], observation{called: 1 << 62, returned: 1<<62 + 1, record: last})
		if why := contradiction(first[n].Sequence, seen[n]); why != "" {
			t.Errorf("under %s, %d calls about object %d have no order: %s", what, len(seen[n]), n, why)
		}
		total += last.Sequence - first[n].Sequence
		tokens := map[lifecycle.Token]bool{}
		for i := range seen[n] {
			if seen[n][i].wrote {
				tokens[seen[n][i].token] = true
			}
		}
		for _, row := range t.history(first[n].Key, first[n].Sequence, all) {
			if !tokens[row.Token] {
				t.Errorf("under %s, the commit of #%d of object %d is in the history, and nobody was told", what, row.Sequence, n)
			}
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("under %s, %d commits of %d goroutines are exact", what, total, clients)
}
