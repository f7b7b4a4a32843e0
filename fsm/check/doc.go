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
//
// # Evolution
//
// [Diff] compares two versions of a table and plays every object through both at
// once, as nodes of an old and a new binary would. The worst of the hazards is the
// verdict:
//
//	compatible  side by side as long as one likes, and back again
//	drain       once no object is in some states, and nobody fires what leads there
//	mapping     once names are translated between old and new
//	unsafe      an old or a new node would do what is wrong for the other
//
// What a drain takes away is unsafe where the state cannot be kept empty.
//
//	id               level         what is so
//	unknown-to-old   unsafe        a new node writes what an old one cannot read
//	unknown-to-new   drain         an old node writes what a new one cannot read
//	forbidden        unsafe        an old node does what the new table forbids
//	ignored          unsafe        an old node accepts and ignores what the new table forbids
//	two-results      unsafe        the same request ends in two ways
//	refused-by-old   note, unsafe  an old node refuses what the new table allows; unsafe with Strict
//	entry-forbidden  unsafe        an old node adds objects as the new table does not
//	deadline-action  unsafe        the sweepers do different things
//	deadline-added   drain         objects that an old node put there have no deadline
//	deadline-time    note          they do the same after different times
//	kind             unsafe        transitional, at rest or absent: they do not agree
//	undo             drain         failed for one, at rest for the other: what undo needs is kept by one of them
//	stranded         unsafe        one kind of node alone cannot bring the object to rest
//	renamed          mapping       two names for one thing
//	too-many-guards  unsafe        a cell differs, and has more guards than are compared one by one
//
// The same table twice gives an empty [Evolution]. Two versions judged one after
// the other say nothing about both at once: compare what will run side by side.
//
// # Paths
//
// [NewTour] finds a shortest way through every row of a table in every status in
// which it can be taken, and lists the rows that no object can take; [Negatives]
// are the requests that have to be refused; [Mutants] are the tables with one
// small fault. Package fsmtest runs all of them against a system. The pairs of
// state and origin can be too many for that: [ErrTooLarge].
//
// # Protocols
//
// A [System] composes actors, the bounded channels between them, and faults; or a
// [Model] is one state and its steps. [System.Explore] visits every state that can
// be reached and gives a [Verdict].
//
// A step is one send, one delivery, one local action or one fault. Steps of
// different actors come in any order; nothing happens at the same time. In a state
// these are possible:
//
//   - every local action that [Actor.Acts] lists
//   - every message that [Sends] lists, while its channel has room
//   - every delivery to an actor that [Receives]: of the oldest message of an
//     ordered channel, of any message of another. An actor cannot refuse one
//   - while there is a budget: the loss or duplication of any message, and every
//     [Fault] that can strike all its actors. What mends a fault, as a restart
//     does, is a local action and no fault
//
// Equal messages in an unordered channel, or beside each other in an ordered one,
// are not told apart: to take one of them is one step.
//
// What is checked of every reachable state:
//
//   - its invariants ([System.Always]), else the system is [Violated]
//   - that it can still come to rest ([System.Rests]) if no further fault happens,
//     else the system is [Stuck] or in a [Livelock]. This says that a way to rest
//     remains, and not that it is taken: no fairness is assumed of anybody, and a
//     system that may for ever put off what it owes passes. A fault after which
//     rest is out of reach is found, however many others are left in the budget
//
// What Explore guarantees:
//
//   - [Holds] means that every reachable state was visited. A bound reached or a
//     context ended is [Inconclusive], with the reason, if nothing wrong was found
//     until then; a faulty description, a panic included, is an error
//   - The trace of a violation or of a stuck state is a shortest one for that kind
//     of fault. States are visited in order of their distance, and the first of
//     them found ends the exploration. Livelocks are looked for when all states
//     are known; their trace leads to the nearest state from which the system goes
//     round for ever, and once round
//   - Verdict, counts and trace do not depend on the number of workers, nor on
//     chance
//   - It owns its goroutines, and they have ended when it returns
//
// States are compared in full: no two of them are taken for one because of their
// hash. What a real system does beyond its model, nobody checked.
//
// # Conformance
//
// [Conform] judges a history by the tables of its time: rows from a store, or JSON
// lines from anywhere ([ReadHistory]), of many objects in one feed. It takes one
// pass, and what it keeps grows with the objects that are alive at once.
//
//	id                      what is so
//	unreadable              a line that is not of the documented form
//	unknown-machine         a row of a machine of which there is no table
//	unknown-version         a row of a version of which there is no table
//	unknown-name            a state or an event that the table does not have
//	wrong-version           the step is of another version than the row is
//	illegal-step            no row of the table leads there on this event
//	wrong-actor             a row leads there, for somebody else
//	no-beginning            the first row of an object is in the middle of its life
//	created-twice           an object comes into being that is there
//	broken-chain            a row does not begin where the one before it ended
//	outcome-without-intent  work ends that was not begun, or of another operation than is under way
//	wrong-origin            where the object was at rest last is another state
//	skipped-sequence        a sequence number is missing
//	repeated-sequence       a sequence number comes again, or late
//	repeated-operation      an operation begins with the number of an earlier one
//	time-backwards          a row is of an earlier time than the one before it
package check
