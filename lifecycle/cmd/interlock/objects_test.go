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

// TestWholeCells: no cell lacks what an operator needs: the id for the next command, the
// process to restart, the next move.
func TestWholeCells(t *testing.T) {
	o := inspect.Object{
		ID:    "tenant-6ba7b810-9dad-11d1-80b4-00c04fd430c8/disk-6ba7b811-9dad-11d1-80b4-00c04fd430c8",
		Cause: "work has run 12m30s longer than its time-out of 10m0s and ignores its context: restart process replica-7",
		NextMove: `the process replica-7, which is alive; or the sweeper fires again: the operation starts again, ` +
			`in a process that can do the work "copy", if the deadline has passed by the clock of the store`,
	}
	var out strings.Builder
	p := &printer{w: tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)}
	p.objects(&inspect.ObjectList{Machine: "vm", Stuck: true, Objects: []inspect.Object{o}})
	require.NoError(t, p.w.Flush())
	require.Contains(t, out.String(), " "+o.ID+" ")
	require.Contains(t, out.String(), " "+o.Cause+"  "+o.NextMove+"\n")

	out.Reset()
	p.row(strings.Repeat("x", 4096), "end")
	require.NoError(t, p.w.Flush())
	require.Equal(t, strings.Repeat("x", maxCell-1)+"…  end\n", out.String())
}
