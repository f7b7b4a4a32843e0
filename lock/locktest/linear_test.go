package locktest

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// pair is what a slot holds: a list of histories has one request or two. The
// zero request is none.
type pair [2]lock.Request

// peer is the specification of histories written once more, by what lock says of
// modes and requests, for a checker that is not ours.
var peer = porcupine.Model{
	Init: func() any { return [mostClients * slots]pair{} },
	Step: func(before, input, _ any) (bool, any) {
		state, o := before.([mostClients * slots]pair), input.(operation)
		own := -1
		next := state[o.slot]
		switch o.action {
		case againAction:
			return true, state
		case unlockAction:
			state[o.slot] = pair{}
			return true, state
		case downgradeAction:
			next = each(next, func(lock.Mode) lock.Mode { return o.mode })
			state[o.slot] = next
			return true, state
		case upgradeAction:
			own = o.slot
			next = each(next, func(m lock.Mode) lock.Mode { return lock.Join(m, o.mode) })
		case tryAction:
			list, _ := lock.Normalize(o.rs)
			next = pair{}
			copy(next[:], list)
		}
		var names []int
		for slot, other := range state {
			if slot != own && conflicting(next, other) {
				names = append(names, slot)
			}
		}
		if o.refused {
			return len(names) > 0 && slices.Equal(names, o.names), state
		}
		state[o.slot] = next
		return len(names) == 0, state
	},
}

func each(p pair, f func(lock.Mode) lock.Mode) pair {
	for i := range p {
		if p[i].Mode != 0 {
			p[i].Mode = f(p[i].Mode)
		}
	}
	return p
}

func conflicting(a, b pair) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Mode != 0 && y.Mode != 0 && x.Conflicts(y) {
				return true
			}
		}
	}
	return false
}

func second(history []operation) porcupine.CheckResult {
	var ops []porcupine.Operation
	for _, o := range history {
		ops = append(ops, porcupine.Operation{ClientId: o.client, Input: o, Call: o.called, Return: o.returned})
	}
	return porcupine.CheckOperationsTimeout(peer, ops, time.Minute)
}

// At least 400 histories of the tree, with none illegal and none undecided; and
// another checker, with a specification of its own, thinks so too.
func TestHistoriesOfTheTree(t *testing.T) {
	h := treeHarness()
	h.Histories = 400
	if long() {
		h.Histories = 4_000
	}
	refused, granted := 0, 0
	trial := newTrial(t, &h, false, nil)
	count := histories(trial, func(history []operation, v verdict) {
		require.Equal(t, porcupine.Ok, second(history))
		for _, o := range history {
			switch {
			case o.refused:
				refused++
			case o.action == tryAction:
				granted++
			}
		}
	})
	require.Equal(t, verdicts{legal: h.Histories}, count)
	t.Logf("%d histories, %d grants, %d refusals", h.Histories, granted, refused)
	require.Greater(t, granted, h.Histories*10)
	require.Greater(t, refused, h.Histories*10)
}

// Where histories are illegal, the checkers agree too.
func TestCheckersAgreeOnIllegalHistories(t *testing.T) {
	both := map[verdict]int{}
	known := newRules()
	for seed := range uint64(100) {
		history, err := record(t.Context(), newSharded(lock.Config{MaxHolders: manyHolders}), 2+int(seed)%3, seed)
		require.NoError(t, err)
		v := judge(known, history)
		require.Equal(t, map[verdict]porcupine.CheckResult{legal: porcupine.Ok, illegal: porcupine.Illegal}[v], second(history))
		both[v]++
	}
	t.Logf("%d legal, %d illegal", both[legal], both[illegal])
	require.NotZero(t, both[legal])
	require.NotZero(t, both[illegal])
}

// Small histories whose verdict is known.
func TestJudge(t *testing.T) {
	rs := []lock.Request{at(lock.X, "/a")}
	granted := func(slot int, called, returned int64) operation {
		return operation{client: slot / slots, slot: slot, called: called, returned: returned, rs: rs}
	}
	freed := func(slot int, called, returned int64) operation {
		return operation{client: slot / slots, slot: slot, called: called, returned: returned, action: unlockAction}
	}
	refused := func(slot int, called, returned int64, names ...int) operation {
		o := granted(slot, called, returned)
		o.refused, o.names = true, names
		return o
	}
	for name, test := range map[string]struct {
		want    verdict
		history []operation
	}{
		"nothing":                       {legal, nil},
		"one after the other":           {legal, []operation{granted(0, 1, 2), freed(0, 3, 4), granted(2, 5, 6)}},
		"two at once":                   {illegal, []operation{granted(0, 1, 2), granted(2, 3, 4)}},
		"two at once, at the same time": {illegal, []operation{granted(0, 1, 4), granted(2, 2, 3)}},
		"freed meanwhile":               {legal, []operation{granted(0, 1, 2), freed(0, 3, 6), granted(2, 4, 5)}},
		"freed too late":                {illegal, []operation{granted(0, 1, 2), granted(2, 3, 4), freed(0, 5, 6)}},
		"refused":                       {legal, []operation{granted(0, 1, 2), refused(2, 3, 4, 0)}},
		"refused in vain":               {illegal, []operation{refused(2, 1, 2, 0), granted(0, 3, 4)}},
		"refused after the end":         {illegal, []operation{granted(0, 1, 2), freed(0, 3, 4), refused(2, 5, 6, 0)}},
		"refused without names":         {illegal, []operation{granted(0, 1, 2), refused(2, 3, 4)}},
		"refused with a wrong name":     {illegal, []operation{granted(0, 1, 2), refused(2, 3, 4, 0, 4)}},
	} {
		require.Equal(t, test.want, judge(newRules(), test.history), name)
	}
}
