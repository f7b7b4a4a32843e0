package tumblebug

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// What a [Provider] answers with. Every other error of a provider means that
// nobody knows what became of the request.
var (
	// ErrRejected: the provider has refused the request, and will do nothing
	// about it.
	ErrRejected = errors.New("tumblebug: rejected by the provider")
	// ErrNoVM: the provider knows for sure that it has no such VM.
	ErrNoVM = errors.New("tumblebug: no such VM at the provider")
)

// errStray is the end of a VM that was asked for an MCI that is gone. Who makes the
// MCI that has its name now removes it.
var errStray = errors.New("tumblebug: its MCI is gone")

// errOver is the end of whoever goes on with an action of an MCI when the next one of
// the same kind is under way already.
var errOver = fmt.Errorf("%w: a later action of the MCI is under way", lifecycle.ErrStale)

// ErrNotHeld: continue or withdraw of an MCI that does not wait for it. It
// matches [fsm.ErrNotAllowed].
var ErrNotHeld = fmt.Errorf("%w: the MCI is not on hold", fsm.ErrNotAllowed)

// ErrTransitional: most VMs of the MCI are in transition, by actions of their
// own. Ask again when they rest. It matches [lifecycle.ErrBusy].
var ErrTransitional error = transitional{}

type transitional struct{}

func (transitional) Error() string        { return "MCI is in transitional state" }
func (transitional) Is(target error) bool { return target == lifecycle.ErrBusy }

// UnderActionError is the refusal of an action while another one is under way. It
// matches [lifecycle.ErrBusy]: ask again later, or with force.
type UnderActionError struct {
	MCI    string // id
	Action Action // that is under way
}

// Error has the text of the document.
func (e *UnderActionError) Error() string {
	return fmt.Sprintf("MCI is under %s, please try later", e.Action)
}

// Is matches [lifecycle.ErrBusy].
func (e *UnderActionError) Is(target error) bool { return target == lifecycle.ErrBusy }
