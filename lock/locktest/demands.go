package locktest

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

//go:embed testdata/demands.txt
var scripts string

// demands returns all demands, sorted by name.
func demands() []demand {
	list := []demand{
		// Of two requests both are granted if they do not conflict, and one otherwise.
		{name: "G1_exclusion/pairs_follow_the_rule", test: pairs},
		// Concurrent tries, waits, lists and conversions never hold what conflicts, and
		// never deadlock.
		{name: "G1_exclusion/concurrent_callers_exclude_each_other", test: concurrentCallers, crowd: true},
		// A call that panics, because a method of its context does, leaves nothing.
		{name: "G2_no_trace/panics", test: panics, needs: "Synctest"},
		// After many paths, deep, beside and below each other, no node is kept.
		{name: "G3_nothing_when_idle/many_paths", test: manyPaths},
		// Any goroutine may unlock, several may at once, and one release happens.
		{name: "G4_release/from_any_goroutine", test: anyGoroutine, crowd: true},
		// Beyond MaxHolders a refusal lists that many holders and sets More.
		{name: "G6_conflicts_have_names/up_to_a_limit", test: limit, needs: "MaxHolders", config: lock.Config{MaxHolders: 3}},
		// Each of many concurrent holders of a node has a greater token.
		{name: "G7_tokens_grow/among_concurrent_callers", test: concurrentTokens, crowd: true},
		// No token is below FirstToken.
		{
			name: "G7_tokens_grow/from_the_first_token", test: firstToken,
			needs: "FirstToken", config: lock.Config{FirstToken: 1 << 40},
		},
		// The next holder of a broken grant finds Check, Lost and context ended.
		{name: "G8_loss_is_announced_first/before_the_next_grant", test: announcedFirst, crowd: true},
		// Break and Revoke of a token that is not held take nothing away.
		{name: "G8_loss_is_announced_first/only_held_tokens", test: onlyHeldTokens},
		// A Fence refuses a lost holder's write after the next holder has passed.
		{name: "G9_late_writes_are_refused/by_a_fence", test: fenced},
		// A call with an ended context returns its error and cause, without effect.
		{name: "G11_contexts_bound_waits/ended_is_refused", test: endedRefused},
		// A wait whose deadline passes returns context.DeadlineExceeded.
		{name: "G11_contexts_bound_waits/deadlines_end_waits", test: deadlines},
		// Unlock with an ended context releases.
		{name: "G11_contexts_bound_waits/release_does_not_depend_on_them", test: releaseAnyway},
		// The end of the context of a call does not end the grant.
		{name: "G11_contexts_bound_waits/a_grant_outlives_its_context", test: outlives},
		// Where grant and cancellation meet, an error means that nothing is held.
		{name: "G11_contexts_bound_waits/cancelled_as_it_is_granted", test: cancelledAsGranted, crowd: true},
		// Bad paths, modes, lists, texts and scopes are ErrInvalid, without effect.
		{name: "G12_bad_input/is_refused_before_any_effect", test: badInput},
		// Of several calls that wait under one id, one cancellation ends one call.
		{name: "IDs/one_call_of_several_is_cancelled", test: oneCancelled, crowd: true},
		// Concurrent calls with one id get one grant.
		{name: "IDs/of_concurrent_callers", test: concurrentIDs, crowd: true},
		// Random sequences of calls are answered as the oracle answers them.
		{name: "Model/random_sequences_agree", test: randomSequences},
		// Histories of concurrent callers are linearizable.
		{name: "Histories/are_linearizable", test: histories, crowd: true},
	}
	list = append(list, scripted()...)
	slices.SortStableFunc(list, func(a, b demand) int { return strings.Compare(a.name, b.name) })
	return list
}

// scripted returns the demands of testdata/demands.txt.
func scripted() (list []demand) {
	for line := range strings.Lines(scripts) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			d := demand{}
			settings := ""
			d.name, settings, _ = strings.Cut(line, " ")
			if n, err := fmt.Sscanf(settings, "MaxWaiters=%d", &d.config.MaxWaiters); n == 1 && err == nil {
				d.needs = "MaxWaiters"
			}
			list = append(list, d)
		default:
			list[len(list)-1].script += line + "\n"
		}
	}
	return list
}
