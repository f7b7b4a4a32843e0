// Package scripttest runs the script tests of this repository: commands in, the full
// trace out, in the format of github.com/cockroachdb/datadriven.
//
//	func TestScripts(t *testing.T) {
//		scripttest.Run(t, "testdata/*.script", func(t *testing.T) scripttest.Harness {
//			objects := newObjects(t)
//			return scripttest.Harness{Commands: map[string]scripttest.Command{
//				"create": func(t *testing.T, a *scripttest.Args) string {
//					rec, err := objects.Create(t.Context(), a.Word(), a.Number("nodes"))
//					if err != nil {
//						return scripttest.Error(err)
//					}
//					return string(rec.State)
//				},
//			}}
//		})
//	}
//
// A file consists of commands and their expected output. Arguments are words, and
// values as key=value or key=(value, value):
//
//	create c nodes=3
//	----
//	CreateRequested
//
// `go test -run TestScripts -args -rewrite` writes the actual output into the files.
//
// Guarantees:
//   - Every file is a subtest with a harness of its own, in a testing/synctest bubble:
//     time is virtual and starts at the same instant in every file.
//   - A command ends when all goroutines of the bubble are blocked. The trace of
//     the harness is read after that.
//   - An unknown command and an argument that no command reads fail the test.
//   - The command "advance DURATION" exists in every harness. It lets virtual time pass.
//
// [Store] is a memory store for tests of systems: with functions of the test at the calls, with
// outages, and of a process that dies.
package scripttest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/interlock-go/interlock/lifecycle"
)

// Command executes one command of a script and returns its output. A missing newline at
// the end is added.
type Command func(t *testing.T, a *Args) string

// Harness has the commands of one file.
type Harness struct {
	Commands map[string]Command
	// Trace returns and clears what happened since its last call. It runs after every
	// command, and its output precedes that of the command. Nil: no trace.
	Trace func() string
	// Close runs at the end of the file, in the bubble. It ends all goroutines of the
	// harness. Nil: nothing runs.
	Close func(t *testing.T)
}

// Run runs all files that match the pattern. The function start creates the harness of one
// file. Run fails if no file matches.
func Run(t *testing.T, pattern string, start func(t *testing.T) Harness) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no script matches %q: %v", pattern, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, filepath.Ext(name)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				harness := start(t)
				if harness.Close != nil {
					defer harness.Close(t)
				}
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					return harness.execute(t, d)
				})
			})
		})
	}
}

func (h *Harness) execute(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	command := h.Commands[d.Cmd]
	if command == nil && d.Cmd == "advance" {
		command = advance
	}
	if command == nil {
		d.Fatalf(t, "unknown command %q, the commands are %v", d.Cmd, slices.Sorted(maps.Keys(h.Commands)))
	}
	args := &Args{t: t, d: d, read: make([]bool, len(d.CmdArgs))}
	out := command(t, args)
	args.checkAllRead()
	synctest.Wait()
	if h.Trace != nil {
		out = line(h.Trace()) + out
	}
	if out == "" {
		return "nothing\n"
	}
	return line(out)
}

func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func advance(t *testing.T, a *Args) string {
	d, err := time.ParseDuration(a.Word())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(d) // virtual time
	return ""
}

// Error returns the line of a refused command: the HTTP status and the text of the error.
func Error(err error) string {
	return fmt.Sprintf("%d: %s", lifecycle.HTTPStatus(err), strings.ReplaceAll(err.Error(), "\n", "; "))
}
