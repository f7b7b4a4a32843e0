package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed is the output of go list for a package.
type listed struct {
	ImportPath string
	Imports    []string // of files that are not tests
	Deps       []string // all of them, transitively
}

// The budget holds in every module of the repository, and no line of it is about a package
// that is gone.
func TestBudget(t *testing.T) {
	used := map[*line]bool{}
	for _, dir := range modules(t) {
		// With -e the dependencies of a nested module need not be there.
		list := goList(t, dir, "-e", "./...")
		require.Empty(t, violations(budget, list), "module in %s", dir)
		for _, p := range list {
			used[lineOf(budget, inModule(p.ImportPath))] = true
		}
	}
	for i := range budget {
		require.True(t, used[&budget[i]], "no package of line %q", budget[i].pkg)
	}
}

// A program that uses the root module reaches the standard library without package
// testing, and x/sync. The kits are not for programs.
func TestWhatProgramsGet(t *testing.T) {
	for _, p := range goList(t, root, "./...") {
		require.Empty(t, unwanted(budget, p), "%s reaches what no program wants", p.ImportPath)
	}
}

// Every line gives its reason, and none is hidden behind one before it.
func TestBudgetIsWellFormed(t *testing.T) {
	for i := range budget {
		require.NotEmpty(t, budget[i].why, "line %q has no reason", budget[i].pkg)
		pkg := strings.TrimSuffix(budget[i].pkg, "/...")
		require.Same(t, &budget[i], lineOf(budget, pkg), "line %q is never reached", budget[i].pkg)
	}
}

// A budget that finds nothing would hold as well.
func TestViolationsAreFound(t *testing.T) {
	lines := []line{
		{pkg: "a"},
		{pkg: "b", may: []string{"a", "golang.org/x/sync/..."}},
		{pkg: "atest", kit: true, may: []string{"a"}},
		{pkg: "free/...", may: []string{"..."}},
	}
	pkg := func(name string, imports ...string) []listed {
		return []listed{{ImportPath: module + "/" + name, Imports: imports}}
	}
	for name, test := range map[string]struct {
		pkgs []listed
		want []string
	}{
		"standard library":  {pkg("a", "io", "net/http"), nil},
		"allowed":           {pkg("b", module+"/a", "golang.org/x/sync", "golang.org/x/sync/errgroup"), nil},
		"kit":               {pkg("atest", "testing", module+"/a"), nil},
		"anything":          {pkg("free/x", "example.com/y", module+"/b"), nil},
		"another package":   {pkg("a", module+"/b"), []string{"a imports " + module + "/b"}},
		"below an allowed":  {pkg("b", module+"/a/x"), []string{"b imports " + module + "/a/x"}},
		"another module":    {pkg("b", "golang.org/x/synctest"), []string{"b imports golang.org/x/synctest"}},
		"unsafe":            {pkg("free/x", "unsafe"), []string{"free/x imports unsafe"}},
		"C":                 {pkg("a", "C"), []string{"a imports C"}},
		"a kit in the core": {pkg("free/x", module+"/atest"), []string{"free/x imports the kit " + module + "/atest"}},
		"unknown package":   {pkg("c"), []string{"the budget has no line for c"}},
		"unknown below":     {pkg("a/x"), []string{"the budget has no line for a/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, violations(lines, test.pkgs))
		})
	}

	reaches := listed{ImportPath: module + "/a", Deps: []string{
		"io", "vendor/golang.org/x/net/idna", "golang.org/x/sync/errgroup", module + "/b",
		"testing", "testing/internal/testdeps", "pgregory.net/rapid", "golang.org/x/synctest",
	}}
	require.Equal(t, reaches.Deps[4:], unwanted(lines, reaches))
	reaches.ImportPath = module + "/atest"
	require.Empty(t, unwanted(lines, reaches))
}

// violations returns what the packages import without a line that allows it. No line allows
// package unsafe.
func violations(budget []line, pkgs []listed) []string {
	var found []string
	for _, p := range pkgs {
		pkg := inModule(p.ImportPath)
		l := lineOf(budget, pkg)
		if l == nil {
			found = append(found, "the budget has no line for "+pkg)
			continue
		}
		for _, imported := range p.Imports {
			to := lineOf(budget, inModule(imported))
			switch {
			case imported == "unsafe":
				found = append(found, pkg+" imports unsafe")
			case isStandard(imported):
			case !l.allows(imported):
				found = append(found, pkg+" imports "+imported)
			case to != nil && to.kit && !l.kit:
				found = append(found, pkg+" imports the kit "+imported)
			}
		}
	}
	return found
}

// unwanted returns what the package reaches and a program should not get.
func unwanted(budget []line, p listed) []string {
	if l := lineOf(budget, inModule(p.ImportPath)); l != nil && l.kit {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Deps), func(dep string) bool {
		switch {
		case covers("testing/...", dep): // of no use in a program
			return false
		case isStandard(dep), inModule(dep) != "":
			return true
		}
		return covers("golang.org/x/sync/...", dep)
	})
}

// inModule returns the path of a package inside the module, and nothing for the
// packages of others.
func inModule(importPath string) string {
	pkg, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	return pkg
}

// isStandard reports whether a path is of the standard library, where the first
// element has no dot. C is not a package but another language.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return importPath != "C" && !strings.Contains(first, ".")
}

// modules returns the directories of all modules that have packages.
func modules(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for file := range files(t) {
		if path.Base(file) == "go.mod" && file != "internal/tools/go.mod" {
			dirs = append(dirs, filepath.Join(root, filepath.FromSlash(path.Dir(file))))
		}
	}
	require.Contains(t, dirs, filepath.Clean(root))
	return dirs
}

func goList(t *testing.T, dir string, args ...string) []listed {
	t.Helper()
	args = append([]string{"list", "-json=ImportPath,Imports,Deps"}, args...)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list in %s: %s", dir, &stderr)
	var pkgs []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
	require.NotEmpty(t, pkgs, fmt.Sprintf("no packages in %s", dir))
	return pkgs
}
