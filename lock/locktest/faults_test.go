package locktest

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/lock"
)

// fault is something that a locker may get wrong, and the demands that say so.
type fault struct {
	name    string
	demands []string
	bend    bend
}

func (f *fault) harness() Harness {
	return Harness{
		New:        func(_ testing.TB, c lock.Config) lock.Locker { return newNaive(c, f.bend) },
		FirstToken: true, MaxWaiters: true, MaxHolders: true, Synctest: true,
		Attempts: 40, Steps: 2_000, Histories: 40, Seed: 1,
		// What hangs is one of the faults.
		Patience: 100 * time.Millisecond,
	}
}

// The five that every locker is to be held against.
var classics = struct{ doubleUnlock, rollback, barging, marks, nodes fault }{
	fault{
		"a double unlock frees another's lock",
		[]string{"G4_release/twice_frees_nobody_else", "Model/random_sequences_agree", "Vectors/node: a stale second unlock of X must not free the next X"},
		bend{unlockTwice: true},
	},
	fault{
		"the rollback of a failed attempt drops too much",
		[]string{"G2_no_trace/refused_tries_leave_nothing"},
		bend{rollsBackTooMuch: true},
	},
	fault{
		"a try overtakes those who wait",
		[]string{"G5_order_of_arrival/nobody_is_overtaken", "G5_order_of_arrival/nobody_starves", "Model/random_sequences_agree", "Vectors/a queued teardown is not overtaken"},
		bend{tryBarges: true},
	},
	fault{
		"intentions are stored at the nodes, and refuse others in vain",
		[]string{"Histories/are_linearizable"},
		bend{marksNodes: true},
	},
	fault{
		"nodes are never freed",
		[]string{"G3_nothing_when_idle/many_paths", "G3_nothing_when_idle/waits_and_losses", "Model/random_sequences_agree", "Vectors/idle tree is empty after a thousand paths"},
		bend{nodesStay: true},
	},
}

func faults() []fault {
	one := func(demand string) []string { return []string{demand} }
	return []fault{
		classics.doubleUnlock, classics.rollback, classics.barging, classics.marks, classics.nodes,
		{"S and IX go together", one("G1_exclusion/pairs_follow_the_rule"), bend{readersIntend: true}},
		{"it looks, then takes", one("G1_exclusion/concurrent_callers_exclude_each_other"), bend{looksThenTakes: true}},
		{"a cancelled wait keeps its place", one("G2_no_trace/cancelled_waits_leave_nothing"), bend{cancelledStay: true}},
		{"a wait that panics keeps its place", one("G2_no_trace/panics_leave_nothing"), bend{panicsStay: true}},
		{"a refused upgrade is not undone", one("G2_no_trace/refused_upgrades_leave_nothing"), bend{upgradesStay: true}},
		{"a wait that was granted keeps a node", one("G3_nothing_when_idle/waits_and_losses"), bend{grantedKeepNode: true}},
		{"Unlock frees all of the owner", one("G4_release/frees_exactly_what_it_took"), bend{unlockByOwner: true}},
		{"Unlock looks, then frees", one("G4_release/from_any_goroutine"), bend{unlockTwiceAtOnce: true}},
		{"a released handle forgets what it had", one("G4_release/stale_handles_do_nothing"), bend{forgetsRequests: true}},
		{"the last waiter goes first", one("G5_order_of_arrival/waiters_are_granted_in_order"), bend{lastFirst: true}},
		{"a Lock overtakes those who wait", one("G5_order_of_arrival/nobody_starves"), bend{lockBarges: true}},
		{"whoever waits blocks everybody", one("G5_order_of_arrival/waiters_block_only_what_conflicts"), bend{queueBlocksAll: true}},
		{"a release grants one", one("G5_order_of_arrival/one_release_grants_all_that_may"), bend{grantsOne: true}},
		{"a refusal names nobody", one("G6_conflicts_have_names/all_with_details"), bend{namesNobody: true}},
		{"a refusal names the first only", one("G6_conflicts_have_names/all_with_details"), bend{namesOne: true}},
		{"nobody's is mine", one("G6_conflicts_have_names/mine"), bend{nobodyIsMine: true}},
		{"a wait names who came later", one("G6_conflicts_have_names/waits_given_up"), bend{namesLaterOnes: true}},
		{"an upgrade names itself", one("G6_conflicts_have_names/upgrades"), bend{namesItself: true}},
		{"more is not said", one("G6_conflicts_have_names/up_to_a_limit"), bend{moreIsNotSaid: true}},
		{"Holders has no waiters", one("G6_conflicts_have_names/holders_and_snapshot"), bend{waitersHide: true}},
		{"tokens are counted by path", one("G7_tokens_grow/from_grant_to_grant"), bend{tokensByPath: true}},
		{"an upgrade keeps its token", []string{"G7_tokens_grow/upgrades_are_new_grants", "G9_late_writes_are_refused/by_a_fence"}, bend{upgradesKeepToken: true}},
		{"tokens repeat", one("G7_tokens_grow/among_concurrent_callers"), bend{tokensRepeat: true}},
		{"tokens begin at one", one("G7_tokens_grow/from_the_first_token"), bend{firstTokenIsOne: true}},
		{"Break grants before it tells", []string{"G8_loss_is_told_first/before_anybody_else_is_granted", "G8_loss_is_told_first/among_concurrent_callers"}, bend{tellsLate: true}},
		{"a loss has no reason", one("G8_loss_is_told_first/a_lost_grant_is_over"), bend{reasonIsLost: true}},
		{"Revoke takes away", one("G8_loss_is_told_first/revoked_is_not_broken"), bend{revokeTakes: true}},
		{"Break of nobody's token succeeds", one("G8_loss_is_told_first/only_what_is_held"), bend{breaksNobody: true}},
		{"a list counts as many", one("G10_lists_are_atomic/all_or_none"), bend{countsMembers: true}},
		{"a list is kept as it was written", one("G10_lists_are_atomic/in_any_order"), bend{listAsWritten: true}},
		{"a list is locked one by one", one("G10_lists_are_atomic/lists_do_not_deadlock"), bend{listsOneByOne: true}},
		{"a try does not ask its context", one("G11_contexts_bound_waits/ended_is_refused"), bend{triesInVain: true}},
		{"a cancelled wait names nobody", []string{"G11_contexts_bound_waits/cancelled_waits_return", "G11_contexts_bound_waits/deadlines_end_waits"}, bend{waitsNameNobody: true}},
		{"Unlock wants a live context", one("G11_contexts_bound_waits/release_does_not_depend_on_them"), bend{unlockNeedsContext: true}},
		{"a grant ends with the context of its call", one("G11_contexts_bound_waits/a_grant_outlives_its_context"), bend{endsWithContext: true}},
		{"a cancelled wait takes another's place", one("G11_contexts_bound_waits/many_waits_at_once"), bend{cancelsTheFirst: true}},
		{"a grant that comes as the wait is cancelled is kept", one("G11_contexts_bound_waits/cancelled_as_it_is_granted"), bend{cancelledKeepGrant: true}},
		{"texts are not looked at", one("G12_bad_input/is_refused_before_any_effect"), bend{textsUnchecked: true}},
		{"a downgrade raises", one("G12_bad_input/a_bad_conversion_changes_nothing"), bend{downgradesRaise: true}},
		{"the queue has no end", one("G12_bad_input/a_full_queue"), bend{endlessQueue: true}},
		{"a repeated id is a second grant", []string{"IDs/repeated_is_the_same_grant", "IDs/other_requests_are_refused"}, bend{idsAreNotKnown: true}},
		{"an id is the grant, whatever is asked", one("IDs/other_requests_are_refused"), bend{idWhatever: true}},
		{"an id that waits is another place", one("IDs/a_waiting_id"), bend{waitingIDQueues: true}},
		{"one cancelled call of an id ends all", one("IDs/one_call_of_several_is_cancelled"), bend{oneCallIsAll: true}},
		{"it looks for an id, then takes it", one("IDs/of_concurrent_callers"), bend{looksThenTakesID: true}},
		{"an upgrade waits", one("Conversions/upgrades_never_wait"), bend{upgradesWait: true}},
		{"an upgrade replaces the mode", one("Conversions/up_to_the_join"), bend{upgradesReplace: true}},
		{"a downgrade wakes nobody", one("Conversions/down_lets_waiters_in"), bend{downgradesSleep: true}},
		{"an upgrade looks, then raises", one("Conversions/of_concurrent_holders"), bend{looksThenRaises: true}},
	}
}
