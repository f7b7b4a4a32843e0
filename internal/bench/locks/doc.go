// Package locks measures the lock tree against the plain mutexes that it stands on.
package locks
