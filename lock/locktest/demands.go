package locktest

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed testdata/demands.txt
var scripts string

// demands returns all demands, sorted by name.
func demands() []demand {
	list := []demand{
		// A call whose context ends while it runs has its effect or leaves nothing. An Unlock releases.
		{name: "G2_no_trace/calls_cancelled_in_flight", test: cancelledInFlight},
		// Any goroutine may unlock, several may at once, and one release happens.
		{name: "G4_release/from_any_goroutine", test: anyGoroutine},
		// A writer waits for all of many readers, and as many readers wait for the writer.
		{name: "G5_order_of_arrival/a_long_queue", test: longQueue},
		// Beyond MaxHolders a refusal lists that many holders and sets More. Without it, it lists 16.
		{name: "G6_conflicts_have_names/up_to_a_limit", test: limitedRefusals},
		// Each of many concurrent holders of a node has a greater token. A snapshot is of one moment.
		{name: "G7_tokens_grow/among_concurrent_callers", test: concurrentTokens},
		// The next holder of a broken grant finds Check, Lost and context ended.
		{name: "G8_loss_is_announced_first/before_the_next_grant", test: announcedFirst},
		// A revocation reaches the holder, whichever locker of one tree makes it.
		{name: "G8_loss_is_announced_first/revoked_by_another_locker", test: revokedByAnother},
		// A list of MaxRequests is granted as a whole.
		{name: "G10_lists_are_atomic/the_longest_list", test: longestList},
		// A wait whose deadline passes returns context.DeadlineExceeded.
		{name: "G11_contexts_bound_waits/deadlines_end_waits", test: deadlines},
		// Where grant and cancellation meet, an error means that nothing is held.
		{name: "G11_contexts_bound_waits/cancelled_as_it_is_granted", test: cancelledAsGranted},
		// Bad modes, long lists, bad texts, reasons and scopes are ErrInvalid, without effect.
		{name: "G12_bad_input/is_refused_before_any_effect", test: badInput},
		// Of several calls that wait under one id, one cancellation ends one call.
		{name: "IDs/one_call_of_several_is_cancelled", test: oneCancelled},
		// Concurrent calls with one id get one grant.
		{name: "IDs/of_concurrent_callers", test: concurrentIDs},
		// Paths and ids that differ in any byte are different, and holders have the texts of their
		// callers. A caller may change its arguments and the answer of Requests after the call.
		{name: "Arguments/are_kept_unchanged", test: keptTexts},
		// After an error of a conversion that was cancelled in flight the grant is unchanged or lost.
		{name: "Conversions/cancelled_in_flight", test: conversionsInFlight},
		// After conversions of one grant at once, the grant shows what the locker holds.
		{name: "Conversions/of_one_grant_at_once", test: concurrentConversions},
		// A grant that is held for longer than a session lives without a renewal is not lost.
		{name: "Sessions/are_renewed", test: renewedSessions, faulty: true, expires: true},
		// Random sequences of calls are answered as the Tree answers them.
		{name: "Model/random_sequences_agree", test: randomSequences},
		// Histories of concurrent callers are linearizable.
		{name: "Histories/are_linearizable", test: histories},
		// So are those in which some calls get no answer and some grants are lost.
		{name: "Histories/are_linearizable_with_faults", test: faultyHistories, faulty: true},
	}
	list = append(list, scripted()...)
	slices.SortStableFunc(list, func(a, b demand) int { return strings.Compare(a.name, b.name) })
	return list
}

// scripted returns the demands of testdata/demands.txt.
func scripted() (list []demand) {
	states := ""
	for line := range strings.Lines(scripts) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "":
			states = ""
		case line[0] == '#':
			states += line[1:]
		case line[0] != ' ':
			name, config, _ := strings.Cut(line, " ")
			d := demand{name: name, states: states}
			if err := json.Unmarshal([]byte(cmp.Or(config, "{}")), &d.config); err != nil {
				panic(fmt.Sprintf("locktest: parse %q: %v", line, err))
			}
			list = append(list, d)
		default:
			s, err := parseStep(line)
			if err != nil {
				panic(fmt.Sprintf("locktest: parse %q: %v", line, err))
			}
			d := &list[len(list)-1]
			d.steps = append(d.steps, s)
		}
	}
	return list
}
