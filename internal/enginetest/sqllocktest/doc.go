// Package sqllocktest tests package sqllock on PostgreSQL: the conformance suite of lock
// drivers, faults of processes, connections and servers, and ratios.
package sqllocktest
