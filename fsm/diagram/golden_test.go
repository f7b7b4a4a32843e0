package diagram_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// TestGolden compares pictures with those in testdata/golden. A file declares tables
// in the form of parseForm and draws the last one:
//
//	table
//	mermaid|dot|markdown|text [width=N] [current=STATE]
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		var table *fsm.Table
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			config := &diagram.Config{}
			if width := 0; d.MaybeScanArgs(t, "width", &width) {
				defer diagram.SetWidth(width)()
			}
			d.MaybeScanArgs(t, "current", &config.Current)
			switch d.Cmd {
			case "table":
				var err error
				if table, err = parseForm(d.Input); err != nil {
					return err.Error()
				}
				checkPictures(t, table, nil)
				return ""
			case "mermaid":
				checkPictures(t, table, config)
				return diagram.Mermaid(table, config)
			case "dot":
				checkPictures(t, table, config)
				return diagram.DOT(table, config)
			case "markdown":
				return diagram.Markdown(table, config)
			case "text":
				return diagram.Text(table, config)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}
