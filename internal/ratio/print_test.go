package ratio

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrint(t *testing.T) {
	var b strings.Builder
	Print(&b, []Figure{
		{Name: "fsm/fire-int", Value: 1.2749, Goal: 1.4},
		{Name: "fsm/can", Value: 10.996, Goal: 12},
		{Name: "fsm/allocations", Value: 0, Goal: 0},
	})
	require.Equal(t, ""+
		"ratio fsm/fire-int 1.27 goal<=1.4\n"+
		"ratio fsm/can 11.00 goal<=12\n"+
		"ratio fsm/allocations 0.00 goal<=0\n", b.String())
}

func TestPrintRefusesBadNames(t *testing.T) {
	for _, name := range []string{"", "a b", "a\nb", "a\tb", "a\rb"} {
		require.PanicsWithValue(t, fmt.Sprintf("ratio: bad name %q", name), func() {
			Print(&strings.Builder{}, []Figure{{Name: name}})
		})
	}
}

func TestPrintMachine(t *testing.T) {
	var b strings.Builder
	PrintMachine(&b)
	require.Regexp(t, `^machine \S.*, [0-9]+ cores, \S+/\S+, \S.*\n$`, b.String())
	require.Contains(t, b.String(), runtime.GOOS+"/"+runtime.GOARCH+", "+runtime.Version())
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
}
