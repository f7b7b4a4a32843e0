// Package tour finds ways through the rows of a table.
//
// # Paths
//
// [NewTour] finds a shortest way through every row of a table in every status in
// which it can be taken, and lists the rows that no object can take; [Negatives]
// are the requests that have to be refused; [Mutants] are the tables with one
// small fault. Package fsmtest runs all of them against a system. The pairs of
// state and origin can be too many for that: [ErrTooLarge].
package tour
