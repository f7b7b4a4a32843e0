package private

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var terminate os.Signal = syscall.SIGTERM

// process is a running command. Its methods are called by one goroutine at a time.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process was reaped
	err   error         // of the end; written before ended is closed
}

// launch starts a command that ends with this process.
func launch(command []string, dir string, env []string, log *os.File, u user) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true,            // a signal from a terminal is not for the server
		Pdeathsig:  syscall.SIGKILL, // at the end of the thread: Go ends none whose goroutine has not locked it
		Credential: u.credential,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("in %s: %w", dir, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
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

// wait waits for the end and reports whether the process has ended.
func (p *process) wait() bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// kill ends the process and all processes that work in its directory, and waits until none
// is left.
func (p *process) kill(dir string) error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.wait() {
		return fmt.Errorf("process %d outlives SIGKILL", p.cmd.Process.Pid)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		pids := processesIn(dir)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v outlive SIGKILL", pids)
		}
	}
}

// processesIn returns the processes whose working directory is a directory or below it: a
// database server leaves its processes there, whatever their group and parent.
func processesIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// user runs a server. The zero user is that of this process.
type user struct{ credential *syscall.Credential }

// ordinaryUser returns the first of the users that exists if this process is root, which
// servers refuse.
func ordinaryUser(names []string) (user, error) {
	if os.Geteuid() != 0 {
		return user{}, nil
	}
	for _, name := range names {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		return user{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, errors.Join(errUID, errGID)
	}
	return user{}, fmt.Errorf("no user %s to run it", strings.Join(names, " or "))
}

// own gives a directory to the user.
func (u user) own(dir string) error {
	if u.credential == nil {
		return nil
	}
	return os.Chown(dir, int(u.credential.Uid), int(u.credential.Gid))
}
