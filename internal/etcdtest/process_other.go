//go:build !linux

package etcdtest

import (
	"errors"
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func loopback() string { return "127.0.0.1" }

func signalPause(*os.Process, bool) error { return errors.ErrUnsupported }
