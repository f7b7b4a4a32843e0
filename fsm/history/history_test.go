package history_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// TestCheckScripts runs the scripts in testdata/conform:
//
//	table [version=V] [since=TIME]
//	lines of tabletest.ParseLines
//
//	conform [gaps] [others] [slack=D] [ended=N]
//	JSON lines
func TestCheckScripts(t *testing.T) {
	seen := map[string]bool{}
	datadriven.Walk(t, "testdata/conform", func(t *testing.T, path string) {
		var tables []history.TableVersion
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "table":
				table, err := tabletest.ParseLines(d.Input)
				if err != nil {
					return err.Error()
				}
				v := history.TableVersion{Table: table}
				d.MaybeScanArgs(t, "version", &v.Name)
				var since string
				if d.MaybeScanArgs(t, "since", &since); since != "" {
					v.Since, err = time.Parse(time.RFC3339, since)
					require.NoError(t, err)
				}
				tables = append(tables, v)
				return ""
			case "conform":
				config := &history.Config{Gaps: d.HasArg("gaps"), IgnoreOthers: d.HasArg("others")}
				if ended := 0; d.MaybeScanArgs(t, "ended", &ended) {
					defer history.KeepEnded(ended)()
				}
				var slack string
				if d.MaybeScanArgs(t, "slack", &slack); slack != "" {
					config.ClockSlack = sure(time.ParseDuration(slack))
				}
				sum, err := history.Check(history.Read(strings.NewReader(d.Input)), tables, config)
				text := sum.String() + "\n"
				if err != nil {
					text += err.Error() + "\n"
				}
				found := 0
				for id, n := range sum.Counts {
					found += n
					seen[id] = true
				}
				require.Equal(t, err == nil && found == 0, sum.OK() && err == nil)
				return text
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
	documented := slices.Collect(maps.Keys(tabletest.Documented(t, "Findings")))
	require.ElementsMatch(t, documented, slices.Collect(maps.Keys(seen)), "the ids in the scripts")
}

func sure[V any](v V, err error) V {
	if err != nil {
		panic(fmt.Sprintf("unexpected: %v", err))
	}
	return v
}

// seq returns a history of these rows, which ends with err unless that is nil.
func seq(err error, rows ...history.Row) iter.Seq2[history.Row, error] {
	return func(yield func(history.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		if err != nil {
			yield(history.Row{}, err)
		}
	}
}

func TestCheckErrors(t *testing.T) {
	lamp := sure(tabletest.ParseLines("table: lamp\nstable Off\nstable On\nOff -press by u-> On\nOn -press by u-> Off"))
	tables := []history.TableVersion{{Table: lamp}}
	row := history.Row{ID: "l", To: "Off"}

	sum, err := history.Check(seq(nil), tables, nil)
	require.ErrorIs(t, err, history.ErrEmpty)
	require.False(t, sum.OK(), "nothing was shown")

	lost := errors.New("connection lost")
	sum, err = history.Check(seq(lost, row), tables, nil)
	require.ErrorIs(t, err, lost)
	require.Equal(t, 1, sum.Rows, "what was seen before")

	for name, bad := range map[string][]history.TableVersion{
		"none":    nil,
		"nil":     {{}},
		"no name": {{Table: &fsm.Table{}}},
		"twice":   {{Table: lamp}, {Table: lamp}},
		"actors":  {{Table: &fsm.Table{Name: "x", Actors: make([]fsm.Actor, fsm.MaxActors+1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			sum, err = history.Check(seq(nil, row), bad, nil)
			require.ErrorIs(t, err, fsm.ErrInvalid)
			require.NotNil(t, sum)
			require.False(t, sum.OK())
		})
	}

	// A table that no machine can be made of is looked at like others.
	broken := sure(tabletest.ParseLines("table: lamp\nstable Off\nstable On\nOff -press-> Ghost\nOff -press by u-> On\nGhost -x by u-> On"))
	require.NotEmpty(t, broken.Problems())
	sum, err = history.Check(seq(nil, row, history.Row{ID: "l", From: "Off", Event: "press", To: "On", Actor: "u"}),
		[]history.TableVersion{{Table: broken}}, nil)
	require.NoError(t, err)
	require.True(t, sum.OK(), sum)
}

func TestSummaryCounts(t *testing.T) {
	lamp := sure(tabletest.ParseLines("table: lamp\nstable Off\nstable On\nOff -press by u-> On\nOn -press by u-> Off"))
	rows := []history.Row{{ID: "a", To: "Off"}, {ID: "b", To: "Off"}, {ID: "a", From: "Off", Event: "press", To: "On"}}
	for range 103 {
		rows = append(rows, history.Row{ID: "b", From: "Off", Event: "press", To: "Off"})
	}
	sum, err := history.Check(seq(nil, rows...), []history.TableVersion{{Table: lamp}}, nil)
	require.NoError(t, err)
	require.Equal(t, 106, sum.Rows)
	require.Equal(t, 2, sum.Objects)
	require.Equal(t, map[string]int{"illegal-step": 103}, sum.Counts)
	require.Len(t, sum.Findings, 100)
	require.True(t, strings.HasSuffix(sum.String(), "\nand 3 more"), sum)
	require.Equal(t, 4, sum.Findings[0].Row)
	require.Regexp(t, `^row 4 "b": illegal-step: `, sum.Findings[0].String())

	lines := "{\n" + `{"id":"a","to":"Off"}` + "\n[]\n"
	sum, err = history.Check(history.Read(strings.NewReader(lines)), []history.TableVersion{{Table: lamp}}, nil)
	require.NoError(t, err)
	require.Equal(t, 2, sum.Unreadable)
}

// TestManyRows: a finding names some of the rows that the table has, and counts the others.
func TestManyRows(t *testing.T) {
	text := "table: lamp\nstable Off\nstable On"
	for i := range 12 {
		text += fmt.Sprintf("\nOff -press%d by u-> On", i)
	}
	sum, err := history.Check(seq(nil, history.Row{ID: "a", To: "Off"}, history.Row{ID: "a", From: "Off", Event: "pull", To: "On"}),
		[]history.TableVersion{{Table: sure(tabletest.ParseLines(text))}}, nil)
	require.NoError(t, err)
	require.Contains(t, sum.String(), ", Off -press7-> On or 4 more")
}

func TestCheckCorners(t *testing.T) {
	lamp := sure(tabletest.ParseLines("table: lamp\nabsent Gone\nstable Off\nstable On\ntransitional Starting\n" +
		"Gone -make by u-> Off\nOff -start by u-> Starting\nStarting -done-> On\nStarting -fail-> origin\nOn -drop by u-> Gone"))
	make := history.Row{ID: "l", Event: "make", Actor: "u", To: "Off", Sequence: 1}
	start := history.Row{ID: "l", From: "Off", Event: "start", Actor: "u", To: "Starting", Origin: "Off", Sequence: 2}
	done := history.Row{ID: "l", From: "Starting", Event: "done", Actor: "u", To: "On", Sequence: 3}
	drop := history.Row{ID: "l", From: "On", Event: "drop", Actor: "u", To: "Gone", Sequence: 4}
	tests := map[string]struct {
		rows []history.Row
		want map[string]int
	}{
		"sound": {rows: []history.Row{make, start, done, drop}},
		"unknown source": {
			rows: []history.Row{make, {ID: "l", From: "Ghost", Event: "start", Actor: "u", To: "Starting", Sequence: 2}},
			want: map[string]int{"unknown-name": 1},
		},
		"unknown target of an unknown version": {
			rows: []history.Row{make, {ID: "l", From: "Off", Event: "start", To: "Ghost", Version: "7", Sequence: 2}},
			want: map[string]int{"unknown-version": 1, "unknown-name": 1},
		},
		"another origin": {
			rows: []history.Row{make, start, {ID: "l", From: "Starting", FromOrigin: "On", Event: "done", Actor: "u", To: "On", Sequence: 3}},
			want: map[string]int{"wrong-origin": 1},
		},
		"an actor that the table does not have": {
			rows: []history.Row{make, {ID: "l", From: "Off", Event: "start", Actor: "x", To: "Starting", Sequence: 2}},
			want: map[string]int{"wrong-actor": 1},
		},
		"an undeclared actor where every actor may": {
			rows: []history.Row{make, start, {ID: "l", From: "Starting", Event: "done", Actor: "x", To: "On", Sequence: 3}},
			want: map[string]int{"wrong-actor": 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sum, err := history.Check(seq(nil, test.rows...), []history.TableVersion{{Table: lamp}}, nil)
			require.NoError(t, err)
			want := test.want
			if want == nil {
				want = map[string]int{}
			}
			require.Equal(t, want, sum.Counts, "%s", sum)
		})
	}
}
