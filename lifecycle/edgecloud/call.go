package edgecloud

import (
	"fmt"
	"time"
)

// Call is what a user says about one request besides what is asked for. Nil is
// nothing. It is read and never written or kept: a request that is made while
// another one is under way does not see what that one was allowed.
type Call struct {
	// Reason is kept in the record and its history.
	Reason string
	// Force takes the rows that are forced only: to update an object in
	// UpdateError again, and to delete one in CreateError, UpdateError or
	// DeleteError.
	Force bool
	// Override is what does not count this time.
	Override Override
	// Patience is for [Instances.Wait]: how long to wait. Default:
	// [CreateTimeout], [UpdateTimeout] or [DeleteTimeout].
	Patience time.Duration
	// KeepError leaves a failed operation in its error state, for a person to look
	// at, instead of undoing it. Said of the request, it holds whoever finds the
	// failure; said of [Instances.Wait], from then on.
	KeepError bool
}

// Override says what does not count for one request. It is for administrators: an
// object may then be in the cloudlet and not here, or the other way round.
type Override uint8

const (
	// NoOverride: everything counts.
	NoOverride Override = 0
	// IgnoreCRMErrors: an operation that the CRM gives up is as good as done.
	// [Instances.Wait] sees to it, or, if it is said of the request, a sweep.
	IgnoreCRMErrors Override = 1
	// IgnoreCRM: nothing is asked of the CRM, and no cloudlet has to be ready.
	// The object is at once where the operation leads to.
	IgnoreCRM Override = 2
	// IgnoreTransientState: an object that is stuck in transition is changed as if
	// it were at rest. What was under way counts no more.
	IgnoreTransientState Override = 4
	// IgnoreCRMAndTransientState is both.
	IgnoreCRMAndTransientState = IgnoreCRM | IgnoreTransientState
)

// String names it as the constants do.
func (o Override) String() string {
	switch o {
	case NoOverride:
		return "NoOverride"
	case IgnoreCRMErrors:
		return "IgnoreCRMErrors"
	case IgnoreCRM:
		return "IgnoreCRM"
	case IgnoreTransientState:
		return "IgnoreTransientState"
	case IgnoreCRMAndTransientState:
		return "IgnoreCRMAndTransientState"
	}
	return fmt.Sprintf("Override(%d)", uint8(o))
}

func (c *Call) has(o Override) bool { return c != nil && c.Override&o != 0 }

func (c *Call) reason() string {
	if c == nil {
		return ""
	}
	return c.Reason
}

func (c *Call) keeps() bool { return c != nil && c.KeepError }

func (c *Call) force() bool { return c != nil && c.Force }
