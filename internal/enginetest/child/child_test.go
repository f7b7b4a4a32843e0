//go:build linux

package child_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/enginetest/child"
)

const asChild = "INTERLOCK_CHILD_TEST"

func TestMain(m *testing.M) {
	child.Main(asChild, echo)
	goleak.VerifyTestMain(m)
}

// echo answers every line, until its standard input ends. Then it fails if that is ordered.
func echo(fail string) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(strings.ToUpper(lines.Text()))
	}
	if fail != "" {
		return errors.New(fail)
	}
	return nil
}

func start(t *testing.T, fail string) *child.Process {
	t.Helper()
	p, err := child.Start(asChild, fail)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.NoError(t, p.Order("a line"))
	return p
}

func TestStopAndContinue(t *testing.T) {
	p := start(t, "")
	line, err := p.Line()
	require.NoError(t, err)
	require.Equal(t, "A LINE", line)
	require.NoError(t, p.Pause())
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	require.NoError(t, err)
	require.Contains(t, string(state), ") T ")
	require.NoError(t, p.Continue())
	require.NoError(t, p.Stop())
	_, err = p.Line()
	require.Error(t, err, "it has ended")
}

func TestEnds(t *testing.T) {
	p := start(t, "the standard input has ended")
	require.ErrorContains(t, p.Stop(), "exit status 1")
	p = start(t, "")
	require.NoError(t, p.Pause())
	p.Kill()
	p.Kill()
	require.ErrorContains(t, p.Wait(), "killed")
}
