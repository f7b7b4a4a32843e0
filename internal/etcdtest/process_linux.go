package etcdtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent ends also a paused server with the process of the test. The signal comes
// with the end of the thread that has started the process: Go ends no thread whose
// goroutine has not locked it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// loopback returns an address of this machine that no other server listens at. The bad
// schedule at 127.0.0.1: while a server is down, another program gets its port, or a client
// that dials gets it for its own side, and is connected to itself.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
}

func signalPause(p *os.Process, paused bool) error {
	if !paused {
		return p.Signal(syscall.SIGCONT)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The signal stops one thread after the other. The bad schedule: a thread of the server
	// answers a request that was sent after Pause.
	for {
		if err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED, nil); err != unix.EINTR {
			return err
		}
	}
}
