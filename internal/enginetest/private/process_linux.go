package private

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a running command and what it started. Its methods are called by
// one goroutine at a time.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it was reaped
	err   error         // how it ended: written before ended is closed

	guard   *guard
	halted  bool  // pause was called, and resume was not
	stopped []int // while it is halted: its descendants
}

// launch starts a command that dies when we do.
func launch(command []string, dir string, env []string, log *os.File, who owner, g *guard) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true, // a signal that a terminal sends to our group is not for it
		Pdeathsig:  syscall.SIGKILL,
		Credential: who.credential,
	}
	p := &process{cmd: cmd, guard: g, ended: make(chan struct{})}
	started := make(chan error)
	// What the kernel calls the parent's death is the end of the thread that
	// forked. Go ends threads while the process lives: one that belongs to a
	// goroutine, with that goroutine. So this goroutine holds its thread until
	// the process is reaped, which is also its end.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait waits for the end, and returns how it ended.
func (p *process) wait(limit time.Duration) (ended bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true, p.err
	case <-timer.C:
		return false, nil
	}
}

func (p *process) interrupt() error { return p.send(syscall.SIGINT) }
func (p *process) terminate() error { return p.send(syscall.SIGTERM) }

// send signals the process. It holds on to the one that it started: the number
// of one that was reaped may be somebody else's.
func (p *process) send(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// freeze stops the process and returns its descendants. They are looked for when
// it is known to be stopped: before, it could still start one that is not seen.
// Descendants of a database server start none.
func (p *process) freeze() ([]int, error) {
	if err := p.send(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	if err := until(func() bool { return still(p.cmd.Process.Pid) }); err != nil {
		return nil, err
	}
	return descendants(p.cmd.Process.Pid)
}

func (p *process) paused() bool { return p.halted }

func (p *process) pause() error {
	stopped, err := p.freeze()
	if err != nil {
		return err
	}
	p.halted, p.stopped = true, stopped
	if err := p.guard.watch(stopped); err != nil { // first: we may die in between
		return err
	}
	for _, pid := range stopped {
		if err := signal(pid, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	for _, pid := range stopped {
		if err := until(func() bool { return still(pid) }); err != nil {
			return err
		}
	}
	return nil
}

// resume lets everything that pause stopped go on, also when pause has failed.
func (p *process) resume() error {
	errs := make([]error, 0, len(p.stopped)+2)
	for _, pid := range p.stopped {
		errs = append(errs, signal(pid, syscall.SIGCONT))
	}
	errs = append(errs, p.send(syscall.SIGCONT), p.forgetStopped())
	return errors.Join(errs...)
}

// kill ends the process and its descendants, and waits until none is left.
func (p *process) kill() error {
	pids := p.stopped
	if !p.paused() {
		var err error
		if pids, err = p.freeze(); err != nil {
			return errors.Join(err, p.send(syscall.SIGKILL))
		}
	}
	errs := []error{p.send(syscall.SIGKILL)}
	for _, pid := range pids {
		errs = append(errs, signal(pid, syscall.SIGKILL))
	}
	if ended, _ := p.wait(patience); !ended {
		errs = append(errs, fmt.Errorf("process %d outlives SIGKILL", p.cmd.Process.Pid))
	}
	for _, pid := range pids {
		errs = append(errs, until(func() bool { return gone(pid) }))
	}
	return errors.Join(append(errs, p.forgetStopped())...)
}

func (p *process) forgetStopped() error {
	if !p.halted {
		return nil
	}
	p.halted, p.stopped = false, nil
	return p.guard.watch(nil)
}

// until polls for something that the kernel tells nobody about.
func until(done func() bool) error {
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not done after %s", patience)
		}
	}
	return nil
}
