// Package child starts the program of a test again, as a process that the test kills, stops
// and continues.
//
//	func TestMain(m *testing.M) {
//		child.Main("INTERLOCK_EXAMPLE_CHILD", work) // does not return in a child
//		goleak.VerifyTestMain(m)
//	}
//
//	func TestKill(t *testing.T) {
//		p, err := child.Start("INTERLOCK_EXAMPLE_CHILD", orders{Name: "first"})
//		require.NoError(t, err)
//		defer p.Kill()
//		line, err := p.Line()
//		require.NoError(t, err)
//		require.Equal(t, "ready", line)
//	}
//
// A child gets its orders in a variable of the environment. It prints lines for the test,
// and has to end when its standard input does, which ends with the test. What it writes to
// standard error is that of the test.
package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// patience is the longest time that a line or the end of a child may take.
const patience = time.Minute

// Main runs a child and ends the process, if [Start] has started it with the same variable.
// Otherwise it returns.
func Main[Orders any](variable string, run func(Orders) error) {
	text, child := os.LookupEnv(variable)
	if !child {
		return
	}
	var orders Orders
	err := json.Unmarshal([]byte(text), &orders)
	if err == nil {
		err = run(orders)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is a child. Its methods are called by one goroutine at a time.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed at the end of the standard output
	wait  func() error
}

// Start starts a child with orders, which become JSON. TestMain has to call [Main] with the
// same variable. The caller ends the child.
func Start(variable string, orders any) (*Process, error) {
	text, err := json.Marshal(orders)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$") // without Main, it ends at once
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	dieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, stdin: stdin, lines: make(chan string, 100_000)} // a child does not wait for its reader
	p.wait = sync.OnceValue(func() error {
		for range p.lines { // until the end of the output
		}
		return cmd.Wait()
	})
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	return p, nil
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Line returns the next line that the child prints.
func (p *Process) Line() (string, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errors.New("child: it has ended")
		}
		return line, nil
	case <-time.After(patience):
		return "", fmt.Errorf("child: no line after %v", patience)
	}
}

// Order sends a line to the standard input of the child.
func (p *Process) Order(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// Pause stops the child as SIGSTOP does, and returns when it has stopped.
func (p *Process) Pause() error { return signalPause(p.cmd.Process, true) }

// Continue ends a [Process.Pause].
func (p *Process) Continue() error { return signalPause(p.cmd.Process, false) }

// Stop ends the standard input of the child and waits for its end, like [Process.Wait].
func (p *Process) Stop() error {
	_ = p.stdin.Close()
	return p.Wait()
}

// Kill ends the child as kill -9 does. The child may have ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.stdin.Close()
	_ = p.Wait() // the error is the signal
}

// Wait waits for the end of the child. The error is that of [exec.Cmd.Wait], also if the
// child has ended before. A child that does not end within a minute prints its goroutines
// and ends.
func (p *Process) Wait() error {
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Signal(syscall.SIGABRT) })
	defer late.Stop()
	return p.wait()
}
