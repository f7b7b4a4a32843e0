package edgecloud

import (
	"fmt"
	"time"
)

// Call has the options of one request. Nil is none. It is neither modified nor kept:
// concurrent requests do not share their options.
type Call struct {
	// Reason is kept in the record and its history.
	Reason string
	// Force takes the rows that are forced only: to update an object in
	// UpdateError again, and to delete one in CreateError, UpdateError or
	// DeleteError.
	Force bool
	// Override is what the request ignores.
	Override Override
	// Patience is for [Instances.Wait]: how long to wait. Default:
	// [CreateTimeout], [UpdateTimeout] or [DeleteTimeout].
	Patience time.Duration
	// KeepError leaves a failed operation in its error state instead of undoing it.
	// In the call of a request it holds for every later caller and sweep; in the
	// call of [Instances.Wait] it holds from then on.
	KeepError bool
}

// Override is what one request ignores. It is for administrators: the record may
// then differ from what the cloudlet has.
type Override uint8

const (
	// NoOverride: the request ignores nothing.
	NoOverride Override = 0
	// IgnoreCRMErrors: an operation that the CRM reports as failed is recorded as
	// done, by [Instances.Wait]. In the call of the request, a sweep does so too.
	IgnoreCRMErrors Override = 1
	// IgnoreCRM: the CRM is not asked, and no cloudlet has to be Ready. The object
	// is in the target state of the operation at once.
	IgnoreCRM Override = 2
	// IgnoreTransientState: an object that is stuck in transition is changed as if
	// it were at rest. Reports about its present operation are stale then.
	IgnoreTransientState Override = 4
	// IgnoreCRMAndTransientState is both.
	IgnoreCRMAndTransientState = IgnoreCRM | IgnoreTransientState
)

// String returns the name of the constant.
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
