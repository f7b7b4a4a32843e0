package main

import (
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// TestLastChange: the column names the last change as far as the record has it. A table of the
// service may lack the columns.
func TestLastChange(t *testing.T) {
	for want, o := range map[string]inspect.Object{
		"stop by ann":  {Event: "stop", Actor: "ann"},
		"stop":         {Event: "stop"},
		"added by ann": {Actor: "ann"},
		"-":            {},
	} {
		var out strings.Builder
		p := &printer{w: tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)}
		p.objects(&inspect.ObjectList{Machine: "vm", Objects: []inspect.Object{o}})
		require.NoError(t, p.w.Flush())
		row := strings.Split(out.String(), "\n")[1]
		require.Equal(t, want, strings.TrimSpace(row[strings.Index(out.String(), "LAST CHANGE"):]))
	}
}
