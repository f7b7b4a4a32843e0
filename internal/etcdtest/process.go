package etcdtest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Process is the program of the tests, started once more. Its methods are called by one
// goroutine at a time.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // its end stops the process
	stdout *bufio.Reader
	stderr strings.Builder
}

// StartProcess starts the program of the tests once more. Its TestMain finds the orders, as
// JSON, in a variable of the environment, and does not run tests then. The process has to
// end when its standard input does. The caller ends it.
func StartProcess(t testing.TB, variable string, orders any) *Process {
	t.Helper()
	text, err := json.Marshal(orders)
	require.NoError(t, err)
	p := &Process{cmd: exec.Command(os.Args[0], "-test.run=^$")} // without such a TestMain, it ends at once
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = &p.stderr
	dieWithParent(p.cmd)
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(t, p.cmd.Start())
	return p
}

// Line returns the next line that the process prints.
func (p *Process) Line(t testing.TB) string {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	line, err := p.stdout.ReadString('\n')
	late.Stop()
	if err != nil {
		p.Kill()
		require.FailNow(t, "etcdtest: the process has ended", "after %q\n%s", line, &p.stderr)
	}
	return strings.TrimSpace(line)
}

// Order sends a line to the standard input of the process.
func (p *Process) Order(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(p.stdin, line+"\n")
	require.NoError(t, err)
}

// Stop ends the process in order.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	_ = p.stdin.Close()
	require.NoError(t, p.cmd.Wait(), "%s", &p.stderr)
}

// Kill ends the process as kill -9 does. It may have ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.stdin.Close()
	_ = p.cmd.Wait() // the error is the signal
}

// Pause stops the process as SIGSTOP does, and returns when it has stopped.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	require.NoError(t, signalPause(p.cmd.Process, true))
}

// Continue ends a [Process.Pause].
func (p *Process) Continue(t testing.TB) {
	t.Helper()
	require.NoError(t, signalPause(p.cmd.Process, false))
}
