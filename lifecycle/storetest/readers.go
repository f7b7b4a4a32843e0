package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Pages have every object that matches all the time exactly once, while others are created,
// changed and removed. Some of these objects do not change, and some move from one state that
// matches to another.
func pagesMissNothing(t *tester) {
	var stay, exist []string
	for i := range 24 {
		id := fmt.Sprintf("%02d %s", i, []string{"stays", "moves"}[i%2])
		t.put(id, idle)
		exist = append(exist, id)
		if i%2 == 0 {
			stay = append(stay, id)
		}
	}
	n := 0
	others := func(t *tester) {
		n++
		for i := range 8 {
			r := t.get(key(fmt.Sprintf("%02d a", 3*i)))
			err := t.send(commitOf(step(r, n)))
			if r.Exists() || !errors.Is(err, lifecycle.ErrConflict) { // the numbers of an absent object may have grown
				require.NoError(t, err)
			}
		}
	}
	moves := func(t *tester) {
		for i := 1; i < len(exist); i += 2 {
			r := t.get(key(exist[i]))
			to := idle
			if r.State == idle {
				to = moving
			}
			t.move(r, to)
		}
	}
	t.together(1, func(t *tester, _ int) {
		for round := range t.attempts / 4 {
			q := query([]string{idle, moving}[:round%3]...)
			q.Limit = 1 + round%7
			var got []string
			for full := true; full; {
				page := idsOf(t.list(q))
				full = len(page) == q.Limit
				for _, id := range page {
					require.Greater(t, id, q.After, "an id of the next page")
					q.After, got = id, append(got, id)
				}
			}
			want := exist
			if len(q.States) == 1 {
				want = stay
			}
			got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(want, id) })
			require.Equal(t, want, got, "the objects that match all the time in %v, in pages of %d", q.States, q.Limit)
		}
	}, others, moves)
}

// A reader that discards what it has read gets every message once, and those of one
// object in order, while many callers commit.
func messagesAreReadOnce(t *tester) {
	t.needs(t.has.Messages, "the store declares no Messages")
	const writers = 8
	each := max(1, t.attempts/5)
	next := map[string]int{} // by writer: the number of its messages that were read
	read := func(t *tester) {
		for list := t.oldest(3); len(list) > 0; list = t.oldest(3) {
			var numbers []uint64
			for _, m := range list {
				require.Equal(t, fmt.Sprint(m.Key, " ", next[m.Key]), string(m.Payload), "the next message of %s", m.Key)
				next[m.Key]++
				numbers = append(numbers, m.Number)
			}
			t.discard(numbers...)
		}
	}
	t.together(writers, func(t *tester, i int) {
		id := fmt.Sprint("writer", i)
		t.writeAlone(id, each, func(n int, c *lifecycle.Commit) {
			c.Messages = []lifecycle.Message{{Topic: "t", Key: id, Payload: fmt.Append(nil, id, " ", n)}}
		})
	}, read)
	for i := range writers {
		require.Equal(t, each, next[fmt.Sprint("writer", i)], "messages of writer %d", i)
	}
}
