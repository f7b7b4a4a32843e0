package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// Tables as large as a document can be, made so that something could be done for
// every pair of rows, sources or states.
func TestHostileTables(t *testing.T) {
	n := tabletest.Sized(512)
	var states strings.Builder
	for i := range n {
		fmt.Fprintf(&states, `{"name":"s%d","kind":"stable"},{"name":"t%d","kind":"transitional"},`, i, i)
	}
	tests := map[string]func(i int) string{
		"equal rows": func(int) string { return `{"from":"s0","event":"e","actor":"a","to":"s1"}` },
		"a guard each": func(i int) string {
			return fmt.Sprintf(`{"from":"s0","event":"e","actor":"a","to":"s1","guard":"%d"}`, i)
		},
		"an origin each": func(i int) string {
			return fmt.Sprintf(`{"from":"t0","event":"e","to":"s1","origin":["s%d","s%d"]}`, i%n, i/n)
		},
		"one source, many times": func(int) string { return `{"from":"s0","event":"e","to":"s1","row":0}` },
		"every origin everywhere": func(i int) string {
			switch {
			case i < n:
				return fmt.Sprintf(`{"from":"s%d","event":"n","to":"s%d"},{"from":"s%d","event":"e","to":"t0"}`, i, (i+1)%n, i)
			case i < 2*n:
				return fmt.Sprintf(`{"from":"t%d","event":"e","to":"t%d"}`, i-n, (i-n+1)%n)
			}
			return fmt.Sprintf(`{"from":"t%d","event":"r%d","return":true}`, i%n, i%tabletest.Sized(4000))
		},
	}
	for name, row := range tests {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, `{"name":"m","initial":"s0","states":[%s],"transitions":[`, strings.TrimSuffix(states.String(), ","))
			rows := 0
			for next := row(0); b.Len()+len(next)+3 < fsm.MaxDocument && rows < tabletest.Sized(60_000); next = row(rows) {
				if rows++; rows > 1 {
					b.WriteByte(',')
				}
				b.WriteString(next)
			}
			b.WriteString(`]}`)
			table, err := fsm.ParseTable([]byte(b.String()))
			require.NoError(t, err)
			r := check.Analyze(table)
			require.Positive(t, r.Transitions)
			require.LessOrEqual(t, len(r.Problems), 4*(r.Transitions+r.States))
			found := check.Lint(table, nil)
			require.LessOrEqual(t, len(found), 5*(r.Transitions+r.States))
		})
	}
}
