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

// IntentionLock is the multi-granular lock of the document: it is taken in one of
// two modes, and never waits.
type IntentionLock = lock.Intention

// IntentionLockUnlocker remembers the mode in which it was taken, and gives back
// just that, once.
type IntentionLockUnlocker = lock.Unlocker

// The modes of an [IntentionLock].
const (
	// LockGranularityExclusive is granted if nobody has the lock in any mode.
	LockGranularityExclusive = lock.X
	// LockGranularityIntentionExclusive is granted if nobody has it exclusively.
	LockGranularityIntentionExclusive = lock.IX
)
