package imports

import (
	"bytes"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// forbidden is what a file of the repository does not mention, and why.
var forbidden = []struct {
	text    string
	inTests bool // allowed in files of tests
	why     string
}{
	{"/wo" + "rk/", false, "a path of one machine"},
	{"/ro" + "ot/", false, "a path of one machine"},
	{"/ho" + "me/", false, "a path of one machine"},
	{"/tm" + "p/", true, "os.MkdirTemp and mktemp know where the machine wants it"},
	{"<<<<" + "<<<", false, "a merge that was not finished"},
	{"TO" + "DO", false, "what is to be done is done, or is an issue"},
	{"FIX" + "ME", false, "what is to be done is done, or is an issue"},
}

// vendored is a program of others, unchanged: its Unix has a home directory.
const vendored = "lifecycle/inspect/static/graphviz/graphviz.js"

func TestNothingForbiddenIsMentioned(t *testing.T) {
	for name, content := range files(t) {
		if name != vendored {
			require.Empty(t, mentions(name, content), name)
		}
	}
}

func TestMentionsAreFound(t *testing.T) {
	for _, f := range forbidden {
		t.Run(f.text, func(t *testing.T) {
			content := []byte("see " + f.text + "x")
			require.Equal(t, []string{f.text + ": " + f.why}, mentions("fsm/machine.go", content))
			for _, name := range []string{"fsm/machine_test.go", "fsm/testdata/a.txt"} {
				require.Equal(t, !f.inTests, len(mentions(name, content)) == 1, name)
			}
		})
	}
	require.Empty(t, mentions("README.md", []byte("a network/x, a workbench, temporary")))
}

func mentions(name string, content []byte) []string {
	test := strings.HasSuffix(name, "_test.go") || strings.Contains("/"+name, "/testdata/")
	var found []string
	for _, f := range forbidden {
		if !(f.inTests && test) && bytes.Contains(content, []byte(f.text)) {
			found = append(found, f.text+": "+f.why)
		}
	}
	return found
}

// files yields the files of the repository by their path from its root, with
// slashes. What a checkout has besides (.git) and what tools leave behind is
// left out. Because the files are read here, and not only in go list,
// a cached result of go test depends on them.
func files(t *testing.T) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		t.Helper()
		stopped := false
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			switch {
			case d.IsDir() && strings.HasPrefix(name, ".") && name != "." && name != ".ci" && name != ".github":
				return fs.SkipDir
			case !d.Type().IsRegular(), name == ".git", ignored(name): // a worktree has a file .git
				return nil
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if !yield(name, content) {
				stopped = true
				return fs.SkipAll
			}
			return nil
		})
		if !stopped {
			require.NoError(t, err)
		}
	}
}

// ignored reports whether .gitignore has the file: what a build, a benchmark, a
// profiler, an example or a failed property leaves behind.
func ignored(name string) bool {
	if strings.Contains("/"+name, "/testdata/rapid/") {
		return true
	}
	for _, pattern := range []string{"*.test", "*.out", "*.prof", "*.exe", "*.db", "*.db-shm", "*.db-wal", "go.work", "go.work.sum"} {
		if ok, _ := path.Match(pattern, path.Base(name)); ok {
			return true
		}
	}
	return false
}
