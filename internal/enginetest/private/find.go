package private

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// find returns the paths of the named programs of an engine. The variable of
// the environment, a list of directories, comes instead of PATH and the patterns
// when it is set: it chooses one of several installed versions. Without it the
// programs of the highest version are taken.
func find(variable string, patterns []string, names ...string) ([]string, error) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("private: %w", err)
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	if chosen := os.Getenv(variable); chosen != "" {
		dirs = filepath.SplitList(chosen)
	}
	paths := make([]string, 0, len(names))
	for _, name := range names {
		path := lookIn(dirs, name)
		if path == "" {
			return nil, fmt.Errorf("%w: no program %s in PATH, %s or the directories of %s",
				ErrMissing, name, strings.Join(patterns, ", "), variable)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// lookIn returns the program's absolute path in the first directory that has it.
func lookIn(dirs []string, name string) string {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue // a program of the working directory is none that is installed
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// version is the last number of a path such as lib/postgresql/15/bin, 0 if there
// is none.
func version(path string) float64 {
	last := 0.0
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '-' }) {
		if v, err := strconv.ParseFloat(part, 64); err == nil {
			last = v
		}
	}
	return last
}
