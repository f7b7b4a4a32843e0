package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fsm": main})
}

// TestScripts runs the scripts, which compare output and exit code of every command.
// UPDATE_DOCS=1 writes the output into the scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// The directory of fsm alone.
			env.Setenv("PATH_FSM", strings.Split(env.Getenv("PATH"), string(os.PathListSeparator))[0])
			return os.CopyFS(env.WorkDir, os.DirFS("testdata/tables"))
		},
		UpdateScripts: os.Getenv("UPDATE_DOCS") != "",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// large FILE writes a document that is too long for a table.
			"large": func(ts *testscript.TestScript, neg bool, args []string) {
				text := `{"name":"large","notes":["` + strings.Repeat("x", fsm.MaxDocument) + `"]}`
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
			},
			// exit CODE COMMAND... runs the command and compares its exit code.
			"exit": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exit code command...")
				}
				err := ts.Exec(args[1], args[2:]...)
				code := "0"
				if err != nil {
					code = strings.TrimPrefix(err.Error(), "exit status ")
				}
				if code != args[0] {
					ts.Fatalf("exit code %s, want %s", code, args[0])
				}
			},
		},
	})
}

// failing is an output that returns an error.
type failing struct{}

var errFull = errors.New("no space left")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestFailingOutput requires the exit code of an error for a failing output.
func TestFailingOutput(t *testing.T) {
	const table, history = "testdata/tables/lamp.json", "testdata/tables/lamp.jsonl"
	for _, args := range [][]string{
		{"help"},
		{"help", "check"},
		{"check", table},
		{"check", "-format=json", table},
		{"draw", table},
		{"diff", table, table},
		{"diff", "-format=json", table, table},
		{"tour", table},
		{"verify", table, history},
		{"verify", "-format=json", table, history},
		{"verify", table},
		{"verify", "-format=json", table},
	} {
		var errs bytes.Buffer
		require.Equal(t, exitUsage, run(args, strings.NewReader(""), failing{}, &errs), args)
		require.Contains(t, errs.String(), errFull.Error())
	}
}

// TestHelpIsComplete requires every command in the usage, and a help of every command.
func TestHelpIsComplete(t *testing.T) {
	var all bytes.Buffer
	require.Equal(t, exitOK, run([]string{"help"}, nil, &all, nil))
	for _, cmd := range commands {
		require.Contains(t, all.String(), "  "+cmd.name)
		var out, again bytes.Buffer
		require.Equal(t, exitOK, run([]string{"help", cmd.name}, nil, &out, nil))
		require.Equal(t, exitOK, run([]string{cmd.name, "-h"}, nil, &again, nil))
		require.Equal(t, out.String(), again.String())
		require.Contains(t, out.String(), "usage: fsm "+cmd.name)
		require.Contains(t, out.String(), "flags:\n  -")
	}
}

// TestPublishedTables runs every command on every published table.
func TestPublishedTables(t *testing.T) {
	files, err := filepath.Glob("../../testdata/tables/[rs]e*/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	for _, file := range files {
		for _, args := range [][]string{
			{"check", "-show=info"},
			{"check", "-format=json", "-facts"},
			{"tour"},
			{"draw"},
			{"draw", "-format=dot"},
			{"draw", "-format=markdown"},
			{"draw", "-format=text"},
			{"diff", "-fail-on=difference", file},
			{"diff", "-fail-on=difference", "-format=json", file},
		} {
			var out, errs bytes.Buffer
			code := run(append(args, file), strings.NewReader(""), &out, &errs)
			require.Less(t, code, exitUsage, "%s %s: %s", args, file, &errs)
			require.Empty(t, errs.String())
			require.NotEmpty(t, out.String())
			if args[0] == "diff" {
				require.Equal(t, exitOK, code, "%s differs from itself: %s", file, &out)
			}
			if slices.Contains(args, "-format=json") {
				require.True(t, json.Valid(out.Bytes()), "%s %s", args, file)
			}
		}
	}
}

// TestPublishedVersions compares files of a published table that names no actors: each
// version with itself, and with a copy in which one row has another target. verify explores
// each version: a version without deadlines is stuck if an owner dies.
func TestPublishedVersions(t *testing.T) {
	t.Chdir("..") // for ReadVersions
	runs := func(args ...string) (code int, output string) {
		var out, errs bytes.Buffer
		code = run(args, nil, &out, &errs)
		require.Empty(t, errs.String())
		return code, out.String()
	}
	for _, v := range tabletest.ReadVersions(t) {
		d, dir := v.Document(), t.TempDir()
		write := func(name string) string {
			data, err := json.Marshal(d)
			require.NoError(t, err)
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, data, 0o600))
			return file
		}
		old := write("old.json")
		code, out := runs("diff", old, old)
		require.Equal(t, exitOK, code, out)
		require.Contains(t, out, "ironic: compatible, nothing differs\n")

		row := &d.Transitions[len(d.Transitions)-1]
		elsewhere := slices.IndexFunc(d.States, func(s tabletest.State) bool { return s.Name != row.To && s.Name != row.From })
		row.To = d.States[elsewhere].Name
		code, out = runs("diff", old, write("new.json"))
		require.Equal(t, exitFindings, code, out)
		require.Contains(t, out, "ironic: unsafe side by side")
		require.Contains(t, out, "row retargeted: "+row.From+" -"+row.Event+"-> ")

		code, out = runs("verify", old)
		require.Equal(t, exitFindings, code, out)
		require.Contains(t, out, "ironic: stuck")
		require.Contains(t, out, "the owner dies")
	}
}

// TestTraceIsAFixture requires that a test can read the trace that verify writes.
func TestTraceIsAFixture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "late.json")
	var out, errs bytes.Buffer
	code := run([]string{"verify", "-trace", file, "testdata/tables/lamp-late.json"}, nil, &out, &errs)
	require.Equal(t, exitFindings, code, errs.String())
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	trace, err := explore.ParseTrace(data)
	require.NoError(t, err)
	require.Equal(t, explore.Stuck, trace.Outcome)
	require.Contains(t, out.String(), trace.String())
}

// TestHostileNames requires that a name in a file, or of one, adds no line to the output and
// sends nothing to a terminal.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	write := func(file string, text string) string {
		path := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const document = `{"name": "m\nforged", "initial": "A\nforged", "actors": ["u\nforged", "v"],
		"states": [{"name": "A\nforged", "kind": "stable"}, {"name": "%s", "kind": "stable"}, {"name": "C\nforged", "kind": "transitional"}],
		"transitions": [
			{"from": "A\nforged", "event": "e\nforged", "to": "C\nforged", "actor": "u\nforged", "guard": "g\nforged"},
			{"from": "C\nforged", "event": "e\nforged", "return": true},
			{"from": "%[1]s", "event": "e\nforged", "to": "A\nforged"}
		]}`
	old := write("old\u202e.json", fmt.Sprintf(document, `B\u001b[31m`))
	new := write("new.json", fmt.Sprintf(document, `B\u202e`))
	lamp, err := os.ReadFile("testdata/tables/lamp-late.json")
	require.NoError(t, err)
	// verify refuses a name with a control character before it explores the table.
	stuck := write("stuck.json", strings.NewReplacer("lamp", "lamp\u202e", "Starting", "Starting\u202e", "done", "done\u202e", "device", "device\u202e").
		Replace(string(lamp)))
	unreadable := write("unreadable\u202e.json", "{")
	rows := write("rows.jsonl", `{"machine": "x\nforged", "id": "a\nforged", "to": "A\nforged", "event": "f\nforged", "actor": "w\nforged"}
		{"machine": "m\nforged", "id": "b", "to": "A\nforged"}
		{"machine": "m\nforged", "id": "b", "from": "A\nforged", "to": "C\nforged", "event": "e\nforged", "actor": "w\nforged"}`)
	for _, args := range [][]string{
		{"check", "-show=info", old},
		{"check", "-format=json", "-facts", new},
		{"diff", old, new},
		{"diff", "-format=json", old, new},
		{"diff", "-map", "B\x1b[31m=B\u202e", old, new},
		{"tour", old},
		{"verify", old},
		{"verify", stuck},
		{"verify", "-format=json", stuck},
		{"verify", old, rows},
		{"verify", "-format=json", new},
		{"verify", "-format=json", new, rows},
		{"draw", "-format=text", old},
		{"draw", "-at=D", old},
		{"check", unreadable},
		{"check", "absent\x1b\nforged.json"},
		{"check", old, "-format=json\x1b\nforged"},
		{"verify", "-version", "v1@2026\x1b\nforged=" + old, old, rows},
		{"verify", new, unreadable},
		{"verify", "-trace", filepath.Join(dir, "no directory\x1b\nforged", "trace.json"), stuck},
	} {
		var out, errs bytes.Buffer
		run(args, nil, &out, &errs)
		text := out.String() + errs.String()
		require.NotEmpty(t, text)
		require.NotContains(t, text, "\nforged", args)
		require.False(t, strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%s: %q", args, text)
	}
}
