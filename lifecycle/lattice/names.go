package lattice

import "github.com/interlock-go/interlock/lock"

// SystemID names a system. For a [Controller] it is one segment of a path: not
// empty, and without a slash.
type SystemID string

// DeployID names a deploy of a system. Deploys and teardowns do not share their
// names.
type DeployID string

// TeardownID names a teardown of a system.
type TeardownID string

// IntentionLock is the multi-granular lock of the document: it is acquired in one of
// two modes, and never waits.
type IntentionLock = lock.Intention

// IntentionLockUnlocker releases an [IntentionLock] in the mode in which it was
// acquired, once.
type IntentionLockUnlocker = lock.Unlocker

// The modes of an [IntentionLock].
const (
	// LockGranularityExclusive is granted if the lock has no holder in any mode.
	LockGranularityExclusive = lock.X
	// LockGranularityIntentionExclusive is granted if the lock has no exclusive holder.
	LockGranularityIntentionExclusive = lock.IX
)
