//go:build !linux

package private

import (
	"fmt"
	"os"
	"runtime"
)

// Servers start on Linux only: there they end with this process.

var terminate = os.Interrupt

type user struct{}

func ordinaryUser([]string) (user, error) {
	return user{}, fmt.Errorf("%w: servers do not start on %s", ErrMissing, runtime.GOOS)
}

func (user) own(string) error { return nil }

type process struct{ err error }

func launch([]string, string, []string, *os.File, user) (*process, error) { return nil, ErrMissing }

func (*process) running() bool          { return false }
func (*process) wait() bool             { return true }
func (*process) signal(os.Signal) error { return ErrMissing }
func (*process) kill(string) error      { return ErrMissing }
func (*process) pid() int               { return 0 }

func processesIn(string) []int { return nil }
