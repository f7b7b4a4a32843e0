// Package tour computes what a test of a table has to try: a way through every
// row, the requests that a system has to refuse, and tables with one small fault.
// Package fsmtest runs all of them against a system.
//
//	plan, err := tour.New(machine.Table(), nil)
//	if err != nil {
//		return err
//	}
//	for _, sequence := range plan.Sequences {
//		fmt.Println(sequence[0]) // closed: open by user -> opening (from closed)
//	}
//	for _, row := range plan.Missed {
//		fmt.Println("no object can take", row)
//	}
//
// # Guarantees
//
//   - The functions accept every table, sound or not, and change none. They are
//     safe for concurrent use. The same table gives the same result.
//   - [New] takes every row in every status in which an object can take it. A
//     status is a state and an origin. It lists all other rows in [Tour.Missed].
//   - [Negatives] yields each refused request once, with the reason.
//   - [Mutants] marks the mutants that behave like the table, which no test can
//     notice.
//
// # Limits
//
//   - A tour is short but not always the shortest.
//   - A guard is a condition that may or may not hold. The package runs none.
//   - A table with more than 32,768 statuses or 65,536 ways between them is
//     [ErrTooLarge]. So is a table with several thousand guarded rows of one state and event.
package tour
