package child

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent ends also a child that is stopped with the process of the test. The signal
// comes with the end of the thread that has started the child: Go ends no thread whose
// goroutine has not locked it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func signalPause(p *os.Process, paused bool) error {
	if !paused {
		return p.Signal(syscall.SIGCONT)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The signal stops one thread after the other. The bad schedule: a thread of the child
	// answers a request that was sent after Pause.
	for {
		if err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED, nil); err != unix.EINTR {
			return err
		}
	}
}
