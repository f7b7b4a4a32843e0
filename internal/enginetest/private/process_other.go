//go:build !linux

package private

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// What a server needs of the system is had on Linux only: that it dies with us,
// and that all of its processes can be found. Elsewhere none is started, so that
// nothing below ordinary is called.

type owner struct{}

func ordinary([]string) (owner, error) {
	return owner{}, fmt.Errorf("%w: none is started on %s", ErrMissing, runtime.GOOS)
}

func (owner) own(string) error { return nil }

type guard struct{}

func newGuard(string) (*guard, error) { return nil, ErrMissing }
func (*guard) dismiss() error         { return ErrMissing }

type process struct{}

func launch([]string, string, []string, *os.File, owner, *guard) (*process, error) {
	return nil, ErrMissing
}

func (*process) running() bool                            { return false }
func (*process) wait(time.Duration) (ended bool, _ error) { return true, nil }
func (*process) interrupt() error                         { return ErrMissing }
func (*process) terminate() error                         { return ErrMissing }
func (*process) pause() error                             { return ErrMissing }
func (*process) paused() bool                             { return false }
func (*process) resume() error                            { return ErrMissing }
func (*process) kill() error                              { return ErrMissing }

func forget(string) error { return nil }
