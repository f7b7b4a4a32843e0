package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/check"
)

// Findings of one kind are a heading with the advice and a line for each place.
func TestFindingsAreGrouped(t *testing.T) {
	list := check.Findings{
		{ID: "dead-end", Severity: check.Error, Message: "no row leads out of A", Advice: "Add one."},
		{ID: "choice", Severity: check.Warning, Message: "e in A", Rows: []int{1, 2}, Advice: "Split it."},
		{ID: "choice", Severity: check.Warning, Message: "e in B", Advice: "Split it."},
		{ID: "choice", Severity: check.Info, Message: "f in C", Advice: "No change."},
	}
	require.Equal(t, `error dead-end: no row leads out of A. Add one.
warning choice in 2 places. Split it.
  e in A (row 1 and 2)
  e in B
info choice: f in C. No change.`, list.String())
	require.Empty(t, check.Findings{}.String())
}
