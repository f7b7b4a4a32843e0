//go:build !linux

package child

import (
	"errors"
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func signalPause(*os.Process, bool) error { return errors.ErrUnsupported }
