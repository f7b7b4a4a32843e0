// Package crash tests what a process that dies leaves in a real engine: with the
// crash points of package crashtest at every durable write, and with processes that
// are killed by SIGKILL.
package crash
