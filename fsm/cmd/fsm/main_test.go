package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fsm": main})
}

// Every command with its arguments: arguments in, output and exit code out. With
// UPDATE_DOCS=1 what differs is written into the scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { // the tables are there
			// Where fsm is, without what else is on the path.
			env.Setenv("PATH_FSM", strings.Split(env.Getenv("PATH"), string(os.PathListSeparator))[0])
			return os.CopyFS(env.WorkDir, os.DirFS("testdata/tables"))
		},
		UpdateScripts: os.Getenv("UPDATE_DOCS") != "",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// large FILE: makes a document that is longer than a table may be.
			"large": func(ts *testscript.TestScript, neg bool, args []string) {
				text := `{"name":"large","notes":["` + strings.Repeat("x", fsm.MaxDocument) + `"]}`
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
			},
			// exit CODE COMMAND...: runs it and compares the exit code.
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

// failing is an output that takes nothing.
type failing struct{}

var errFull = errors.New("no space left")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A failing output gives an exit code.
func TestOutputThatFails(t *testing.T) {
	const table, history = "testdata/tables/lamp.json", "testdata/tables/lamp.jsonl"
	for _, args := range [][]string{
		{"check", table},
		{"check", "-format=json", table},
		{"draw", table},
		{"diff", table, table},
		{"diff", "-format=json", table, table},
		{"tour", table},
		{"tour", "-format=json", table},
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

// Every command is in the usage, and every flag of it in its help.
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
		require.Contains(t, out.String(), "-format")
	}
}

// Every published table goes through every command.
func TestPublishedTables(t *testing.T) {
	files, err := filepath.Glob("../../testdata/tables/[rs]e*/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	for _, file := range files {
		for _, args := range [][]string{
			{"check", "-show=info", "-facts"},
			{"check", "-format=json", "-facts"},
			{"tour"},
			{"tour", "-format=json", "-every-actor"},
			{"draw"},
			{"draw", "-format=dot"},
			{"draw", "-format=markdown"},
			{"draw", "-format=text"},
			{"draw", "-format=json"},
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
