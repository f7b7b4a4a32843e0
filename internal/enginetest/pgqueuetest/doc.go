// Package pgqueuetest tests queue/pgqueue on PostgreSQL: against a naive model, with several
// workers and processes, and under faults.
package pgqueuetest
