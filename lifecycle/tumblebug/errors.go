package tumblebug

import (
	"errors"
	"fmt"

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

// busyError is a refusal with the text of the document. It matches [lifecycle.ErrBusy]: repeat
// the request later, or with force.
type busyError string

func (e busyError) Error() string        { return string(e) }
func (e busyError) Is(target error) bool { return target == lifecycle.ErrBusy }
