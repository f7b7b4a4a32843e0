package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// lab runs the tests of a package.
type lab struct {
	dir     string
	args    []string
	timeout time.Duration
	scratch string
}

// verdict is what became of a mutant; without a killer it survived.
type verdict struct {
	killer string
	broken error // it does not apply or does not compile
	took   time.Duration
	output string
}

func (v *verdict) survived() bool { return v.killer == "" && v.broken == nil }

func (v *verdict) String() string {
	switch {
	case v.broken != nil:
		return "BROKEN: " + v.broken.Error()
	case v.killer != "":
		return "killed by " + v.killer
	}
	return "SURVIVED"
}

// test runs the tests with a mutant, or with none.
func (l *lab) test(ctx context.Context, m *mutant) (v *verdict) {
	v = new(verdict)
	start := time.Now()
	defer func() { v.took = time.Since(start) }()
	overlay, err := l.overlay(m)
	if err != nil {
		v.broken = err
		return v
	}
	if v.output, err = l.run(ctx, "build", overlay, "."); err != nil {
		v.broken = fmt.Errorf("does not compile: %s", v.output)
		return v
	}
	// For a go command that hangs itself: its tests should have ended themselves
	// long before, and have told which of them hangs.
	late, cancel := context.WithTimeout(ctx, 2*l.timeout+time.Minute)
	defer cancel()
	args := []string{"-count=1", "-failfast", "-vet=off", "-v", "-timeout=" + l.timeout.String(), "."}
	v.output, err = l.run(late, "test", overlay, append(args, l.args...)...)
	if err != nil {
		v.killer, v.broken = killer(v.output, late.Err() != nil)
	}
	return v
}

// overlay writes the changed files and the list of them, which it names.
func (l *lab) overlay(m *mutant) (string, error) {
	list := struct{ Replace map[string]string }{map[string]string{}}
	if m != nil {
		files, err := m.apply(l.dir)
		if err != nil {
			return "", err
		}
		dir, err := filepath.Abs(l.dir)
		if err != nil {
			return "", err
		}
		for name, text := range files {
			changed := filepath.Join(l.scratch, name)
			if err := os.WriteFile(changed, []byte(text), 0o666); err != nil {
				return "", err
			}
			list.Replace[filepath.Join(dir, name)] = changed
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	path := filepath.Join(l.scratch, "overlay.json")
	return path, os.WriteFile(path, data, 0o666)
}

func (l *lab) run(ctx context.Context, verb, overlay string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-overlay=" + overlay}, args...)...)
	cmd.Dir = l.dir
	// The short form of the tests: one mutant must not take hours.
	cmd.Env = append(os.Environ(), "INTERLOCK_LONG=")
	// If the command is ended, the tests that it left behind may hold its output;
	// they end by their own time-out.
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

var (
	ran     = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	within  = regexp.MustCompile(`(?m)^ +--- FAIL: (\S+)`)
	crashed = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)`)
)

// killer reads from the output of failed tests what failed first.
func killer(output string, hangs bool) (name string, broken error) {
	if strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]") {
		return "", fmt.Errorf("the tests do not compile: %s", output)
	}
	last := "nothing"
	if all := ran.FindAllStringSubmatch(output, -1); len(all) > 0 {
		last = all[len(all)-1][1]
	}
	crash := crashed.FindStringSubmatch(output)
	switch {
	case hangs:
		return last + ", by time-out of the command", nil
	case crash != nil && strings.HasPrefix(crash[1], "test timed out"):
		return last + ", by time-out", nil
	}
	name = last
	if f := within.FindStringSubmatch(output); f != nil {
		name = f[1]
	} else if f := failed.FindStringSubmatch(output); f != nil {
		name = f[1]
	} else if crash == nil {
		if strings.Contains(output, "goleak:") {
			return "goleak, after all tests", nil
		}
		return "", fmt.Errorf("no test failed, but go test did: %s", output)
	}
	if crash != nil {
		name += ", by panic: " + strings.TrimSpace(strings.SplitN(crash[1], " [recovered", 2)[0])
	}
	return name, nil
}
