// Package check tells whether a lifecycle table can be trusted: before it is
// shipped, before it is changed, while it is tested and after it has run. It takes
// the [fsm.Table] of the machine that runs, so that what was checked is what runs.
//
//	                 ┌─▶ Analyze, Lint                   what is odd in it                 Findings
//	                 ├─▶ NewTour, Negatives, Mutants     what tests have to try            Paths
//	one table ───────┤
//	                 ├─▶ System.Explore, Model.Explore   what peers and faults do to it    Protocols
//	                 └─▶ Conform                         whether a history followed it     Conformance
//
//	two versions ──────▶ Diff                            what they do side by side         Evolution
//
// The headings on the right are those below. Package fsmtest runs what is here in
// tests, and the command fsm on tables in files.
//
// # Words
//
//   - A row is one of [fsm.Table.Rows], a transition is a row in one of its sources:
//     so [Report.Transitions] counts them. A tour takes a transition in every status,
//     which is a state and an origin, and [Tour.Transitions] counts it for each.
//   - A step is one thing that happens: to one object in a [TourStep] and in an
//     [Act] of the witness of a hazard, in a protocol in a [TraceStep].
//   - A [fsm.Problem] keeps a table from being a machine. A [Finding] is about a
//     table, problems included, a [HistoryFinding] about a history, a [Hazard] about
//     two tables in one fleet. Each has an id that is stable and made for programs,
//     and a message for people, which may change (a problem a code and a text).
//
// # Guarantees
//
//   - Every table is taken, sound or not, an empty one included, and nothing is
//     changed. What looks at rows and states does not recurse. Where the work would
//     grow beyond bounds it is refused with an error, and not done in part.
//   - A pass has been earned: what was cut short is an error or [Inconclusive], an
//     empty history and a system that cannot be explored are errors, and a verdict
//     that hangs on a name that was guessed says so ([Evolution.Guessed]).
//   - The same input gives the same result, lists in the same order. Functions that
//     take tables are safe for concurrent use.
//   - Every fact of a table has one definition, which stands on its field of
//     [Report]. Its JSON has the names that the collections of lifecycle-table/1
//     tables use, and no null.
//   - [fsm.New] refuses every table that has a problem here; [Report.Errors] are
//     those that are more than a demand of New.
//
// # What it does not do
//
// But for protocols it looks at tables, not at runs: guards are taken as conditions
// that may or may not hold, and an actor as somebody who may act. That a state is
// reachable says that the table leads there, not that an object will ever get
// there. Nothing is known of what stands beside the table: work, payloads,
// preconditions and relations. What a fact means for the objects is for people to
// say in the end: a final state with an exit may be a fault or the way in which
// operators force a retry.
//
// # Findings
//
// [Lint] gives what is to be said about a table as findings: a fault, a gap, or a
// fact that is good to know. Gaps are judged by what lifecycles of running systems
// turned out to need later. What an event is for is read off its name, the kind of
// its target and the name of that (see [Vocabulary]); no state, table or system is
// known by name.
// What is known and meant is passed over by [LintConfig.Skip].
//
//	id                    severity        what is so
//	no-name               error           see the codes of package fsm, also for those that follow
//	bad-name              error
//	duplicate-name        error
//	too-large             error
//	no-initial            error
//	unknown-state         error
//	unknown-actor         error
//	no-actor              error
//	no-source             error
//	bad-row               error
//	bad-state             error
//	bad-guard             error
//	duplicate-row         error
//	ambiguous-row         error
//	unreachable           error
//	dead-end              error
//	final-exit            error
//	no-origin             error
//	never-fits            error
//	no-deadline           info            a demand of fsm.New, said once for all states
//	needless-manual       info            likewise
//	deadline-from-absent  error
//	error-no-exit         error           nothing leads out of an error state
//	cannot-rest           error           transitional, and no way leads to a state that rests
//	cannot-end            warning         no way leads to a final or absent state, in a table that has one
//	illegal-row           error           a row in a cell that the table calls illegal
//	choice                info, warning   state and event leave a choice; a warning where guards alone say where work ends
//	siblings              warning         states that one event enters, of which one lacks an abort, delete or fail edge
//	odd-one               warning         the only transitional state without an abort, delete or fail edge, or stable one without delete
//	owner-death           warning         transitional, and no edge is for work that fails or whose owner died
//	owner-unsaid          warning         other states say what happens when the owner dies, this one does not
//	owner-no-row          error           what is to happen when the owner dies has no row
//	one-actor             warning         transitional, without deadline, and only one actor can lead an object out
//	late-event            info, warning   may come late in a final state, and half of the others have a row for it; a warning where actors differ
//	late-unsaid           info            may come late in a final state, and few others have a row for it, or none
//	late-failure          warning         puts up with the good end of work that was called off, but not with the bad one
//	target-unreached      warning         work does not lead to the target of its state
//	target-outside        warning         a computed target is not where the table says that it is
//	target-elsewhere      info            work may also end well in another state than its target
//	many-actors           warning         several actors can leave a state; only with Exclusive
//	final-forced          info            a final state that is left by force
//	shortcut              info            the event leads to rest at once here, by way of work elsewhere
//	empty-cells           info            events without a row in a state
//	parts                 info            parts of the table that no row connects
//	distance              info            the farthest states, and the strongly connected components
package check
