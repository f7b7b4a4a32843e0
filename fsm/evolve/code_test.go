package evolve_test

import (
	"go/parser"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
)

// A table from a file has any name. In the code it stays in its comment, and the names of
// states stay texts.
func TestCodeOfHostileNames(t *testing.T) {
	const hostile = "a\nfunc() { panic(1) }()"
	table := &fsm.Table{Name: hostile, Initial: -1, States: []fsm.TableState{
		{Name: hostile, Target: -1}, {Name: "gone\n*/\"`", Target: -1},
	}}
	kept := &fsm.Table{Name: "kept", Initial: -1, States: table.States[:1]}
	report, err := evolve.Diff(table, kept, nil)
	require.NoError(t, err)
	comment, value, _ := strings.Cut(report.Code(), "\n")
	require.Equal(t, "// Records of the old a<U+000A>func() { panic(1) }().", comment)
	_, err = parser.ParseExpr(value)
	require.NoError(t, err, value)
}
