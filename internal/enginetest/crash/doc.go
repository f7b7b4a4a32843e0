// Package crash has the tests of what is left when processes die on a real
// engine: the crash points of package crashtest over every durable write, and
// processes that are killed with SIGKILL.
package crash
