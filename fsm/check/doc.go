// Package check reports what is wrong or odd in one lifecycle table. Analyze
// computes facts. Lint makes findings of them.
//
//	table := machine.Table()
//	report := check.Analyze(table)
//	fmt.Println(report.States, report.UnreachableFromInitials)
//
//	findings := check.Lint(table, &check.LintConfig{Skip: []string{"owner-death:Testing"}})
//	for _, f := range findings.AtLeast(check.Warning) {
//		fmt.Println(f) // error error-no-exit: no row leads out of the error state jammed. ...
//	}
//
// The packages evolve, tour, explore and history answer other questions about
// tables. The command fsm runs all of them on files.
//
// # Guarantees
//
//   - The functions accept every table, sound or not, and change none. They are
//     safe for concurrent use.
//   - The same table gives the same result, lists in the same order.
//   - [Report] defines each fact at its field. JSON output has no null.
//   - [fsm.New] refuses every table with one of the first 23 findings. Those of them that
//     are info are demands of New: the table is sound without them.
//
// # Findings
//
// No finding depends on what a name means. The histories of running systems in the
// tests of this package show how many warnings were about states that a later
// version changed.
//
//	id                    severity        meaning
//	no-name               error           this and the next 22 ids are the codes of package fsm
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
//	no-deadline           info            a demand of fsm.New, one finding for all states
//	needless-manual       info            a demand of fsm.New, one finding for all states
//	deadline-from-absent  error
//	endless-timeout       info            a demand of fsm.New, one finding for all states
//	error-no-exit         error           no row leads out of an error state
//	error-no-removal      warning         no work leads from an error state to a final or absent state, unlike from most other error states
//	cannot-rest           error           no path leads from a transitional state to a state of rest
//	cannot-end            warning         no path leads to a final or absent state, in a table that has one
//	only-failure          warning         every exit of the work leads to an error state
//	choice                info, warning   state and event leave a choice; a warning if only guards decide where work ends
//	owner-death           info, warning   the object stays if its owner dies; a fact if most work has neither deadline nor error state
//	late-event            warning         may arrive in a final state without a row for it, unlike other final states
//	target-unreached      warning         no path leads to the declared target of a state
//	parts                 info            the table has parts that no row connects
//
// # Limits
//
// Check looks at the table and not at runs. A guard is a condition that may or may
// not hold. That a state is reachable means that the table leads there. Work,
// payloads, preconditions and relations are outside of the table.
package check
