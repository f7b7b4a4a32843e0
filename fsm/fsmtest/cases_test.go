package fsmtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
	"github.com/interlock-go/interlock/fsm/fsmtest"
)

type diskCase = fsmtest.Case[string, string, disk]

func TestRun(t *testing.T) {
	created := new("created")
	fsmtest.Run(t, disks, []diskCase{
		{From: "absent", Event: "create", Actor: user, To: "creating"},
		{From: "absent", Event: "create", Actor: worker, Err: fsm.ErrWrongActor},
		{From: "created", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting", Row: new(4)},
		{From: "created", Event: "delete", Actor: user, Payload: &disk{used: true}, Err: fsm.ErrGuard},
		{From: "deleting", Origin: created, Event: "done", Actor: worker, To: "trash"},
		{From: "deleting", Origin: created, Event: "failed", Actor: worker, To: "created"},
		{From: "deleting", Event: "failed", Actor: worker, Err: fsm.ErrNotAllowed},
		{From: "gone", Event: "restore", Actor: user, Err: fsm.ErrForcedOnly},
		{From: "gone", Event: "restore", Actor: user, Force: true, To: "created"},
	})
	for says, c := range map[string]diskCase{
		"absent: create by user: leads to creating instead of created":                   {From: "absent", Event: "create", Actor: user, To: "created"},
		"absent: create by worker: is refused: fsm: wrong actor":                         {From: "absent", Event: "create", Actor: worker, To: "creating"},
		"absent: create by worker: is refused for another reason: fsm: wrong actor":      {From: "absent", Event: "create", Actor: worker, Err: fsm.ErrGuard},
		"absent: create by user: is not refused and leads to creating":                   {From: "absent", Event: "create", Actor: user, Err: fsm.ErrGuard},
		"deleting (from created): done by worker: leads to trash instead":                {From: "deleting", Origin: created, Event: "done", Actor: worker, To: "gone"},
		"trash: delete by user: takes row 6 instead of 5":                                {From: "trash", Event: "delete", Actor: user, Payload: &disk{}, To: "deleting", Row: new(5)},
		"nowhere: create by user: fsm: unknown state":                                    {From: "nowhere", Event: "create", Actor: user},
		"gone: restore by user by force: leads to created instead of absent":             {From: "gone", Event: "restore", Actor: user, Force: true, To: "absent"},
		"absent: explode by user: is refused: fsm: unknown event: disk: explode in abse": {From: "absent", Event: "explode", Actor: user, To: "gone"},
	} {
		fails(t, func(t testing.TB) { fsmtest.Run(t, disks, []diskCase{c}) }, "disk: case 0: "+says)
	}
	fails(t, func(t testing.TB) { fsmtest.Run(t, disks, nil) }, "no cases")
}

func TestMatrix(t *testing.T) {
	fsmtest.Matrix(t, disks, "testdata/disk.matrix.txt")
	t.Setenv(fsmtest.Update, "")
	other := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "disk", Initial: "absent", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "absent", Kind: fsm.Absent}, {Name: "here"}},
		Rows: fsm.Rows(fsm.Move("absent", "create", "here"), fsm.Move("here", "delete", "absent")),
	})
	fails(t, func(t testing.TB) { fsmtest.Matrix(t, other, "testdata/disk.matrix.txt") },
		"disk.matrix.txt:4: differs from the table", "table:   create: user -> here", "UPDATE_DOCS=1")
}

func TestMatrixOfForce(t *testing.T) {
	m := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "m", Initial: "s", Actors: []fsm.Actor{user, worker}, States: []fsm.State[string]{{Name: "s"}, {Name: "t"}, {Name: "u"}},
		Rows: fsm.Rows(
			fsm.Move("s", "e", "u").By(user).OnlyForced(), fsm.Move("s", "e", "t").By(user), fsm.Ignore("s", "e").By(worker),
			fsm.Move("t", "e", "s"), fsm.Move("u", "e", "s").OnlyForced(),
		),
	})
	file := filepath.Join(t.TempDir(), "m.txt")
	t.Setenv(fsmtest.Update, "1")
	passes(t, func(t testing.TB) { fsmtest.Matrix(t, m, file) })
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `m begins in s

s is stable
  e: user -> t, by force -> u; worker ignored

u is stable
  e: user, worker by force -> s

t is stable
  e: user, worker -> s
`, string(text))
}

// Every change of a row is seen in the matrix.
func TestMatrixSeesEveryMutant(t *testing.T) {
	t.Setenv(fsmtest.Update, "")
	score := fsmtest.Mutate(t, disks, func(t testing.TB, m *fsm.Machine[string, string, disk]) {
		fsmtest.Matrix(t, m, "testdata/disk.matrix.txt")
	}, nil)
	require.Greater(t, score.Killed, 50)
}

func TestMatrixFunc(t *testing.T) {
	want := func(at fsm.Status[string], e string, actor fsm.Actor) (string, error) {
		step, err := disks.Next(t.Context(), at, e, actor, &disk{})
		if err != nil {
			for _, sentinel := range []error{fsm.ErrNotAllowed, fsm.ErrWrongActor, fsm.ErrForcedOnly, fsm.ErrGuard} {
				if strings.HasPrefix(err.Error(), sentinel.Error()) {
					return "", sentinel
				}
			}
		}
		return step.State, err
	}
	fsmtest.MatrixFunc(t, disks, &disk{}, want)
	for says, wrong := range map[string]func(to string, err error) (string, error){
		"disk: creating (from absent): done by worker: leads to created instead of trash": func(to string, err error) (string, error) {
			return strings.Replace(to, "created", "trash", 1), err
		},
		"disk: absent: create by user: leads to creating and should be refused: fsm: not allowed": func(string, error) (string, error) {
			return "", fsm.ErrNotAllowed
		},
		"is refused instead of leading to broken": func(to string, err error) (string, error) {
			if err != nil {
				return "broken", nil
			}
			return to, nil
		},
		"disk: gone: restore by user: is refused for another reason than fsm: refused by a guard: fsm: only by force": func(to string, err error) (string, error) {
			if err != nil {
				err = fsm.ErrGuard
			}
			return to, err
		},
	} {
		fails(t, func(t testing.TB) {
			fsmtest.MatrixFunc(t, disks, &disk{}, func(at fsm.Status[string], e string, actor fsm.Actor) (string, error) {
				return wrong(want(at, e, actor))
			})
		}, says)
	}
}

func TestDiagram(t *testing.T) {
	fsmtest.Diagram(t, disks.Table(), "testdata/disk.mmd", nil)
	dir := t.TempDir()
	for end, draw := range map[string]func(*fsm.Table, *diagram.Config) string{
		".mmd": diagram.Mermaid, ".dot": diagram.DOT, ".md": diagram.Markdown, ".txt": diagram.Text,
	} {
		file := filepath.Join(dir, "disk"+end)
		config := &diagram.Config{HideActors: true}
		check := func(t testing.TB) { fsmtest.Diagram(t, disks.Table(), file, config) }
		t.Setenv(fsmtest.Update, "0")
		fails(t, check, "does not exist; with UPDATE_DOCS=1")
		t.Setenv(fsmtest.Update, "1")
		passes(t, check, "is written anew")
		t.Setenv(fsmtest.Update, "")
		passes(t, check)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, draw(disks.Table(), config), string(text))
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600))
		passes(t, check)
		require.NoError(t, os.WriteFile(file, text[:len(text)/2], 0o600))
		fails(t, check, "differs from the table")
	}
	fails(t, func(t testing.TB) { fsmtest.Diagram(t, disks.Table(), "disk.png", nil) }, `no picture ends in ".png"`)
	fails(t, func(t testing.TB) { fsmtest.Diagram(t, disks.Table(), dir+"/.txt/none.txt", nil) }, "does not exist")
}
