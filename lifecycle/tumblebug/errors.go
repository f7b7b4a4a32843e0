package tumblebug

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The errors of a [Provider]. Every other error of a provider means that the outcome of
// the request is unknown.
var (
	// ErrRejected: the provider has refused the request and does nothing about it.
	ErrRejected = errors.New("tumblebug: rejected by the provider")
	// ErrNoVM: the provider has no such VM.
	ErrNoVM = errors.New("tumblebug: no such VM at the provider")
)

// errStray is the outcome of a VM whose MCI is gone.
var errStray = errors.New("tumblebug: its MCI is gone")

// errSuperseded refuses a request of an operation of an MCI if a later one has
// requested an action of the same VM.
var errSuperseded = fmt.Errorf("%w: a later action of the MCI has started", lifecycle.ErrStale)

// ErrNotHeld refuses continue and withdraw of an MCI that is not on hold. It matches
// [fsm.ErrNotAllowed].
var ErrNotHeld = fmt.Errorf("%w: the MCI is not on hold", fsm.ErrNotAllowed)

// ErrTransitional refuses an action of an MCI of which most VMs are in transition by
// actions of their own. It matches [lifecycle.ErrBusy].
var ErrTransitional error = transitionalError{}

type transitionalError struct{}

func (transitionalError) Error() string        { return "MCI is in transitional state" }
func (transitionalError) Is(target error) bool { return target == lifecycle.ErrBusy }

// UnderActionError refuses an action during another one. It matches
// [lifecycle.ErrBusy]: repeat the request later, or with force.
type UnderActionError struct {
	MCI    string // name
	Action Action // the present one
}

// Error returns the text of the document.
func (e *UnderActionError) Error() string {
	return fmt.Sprintf("MCI is under %s, please try later", e.Action)
}

// Is matches [lifecycle.ErrBusy].
func (e *UnderActionError) Is(target error) bool { return target == lifecycle.ErrBusy }
