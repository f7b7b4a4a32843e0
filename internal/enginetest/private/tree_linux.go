package private

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// stat is what /proc says of a process or a thread.
type stat struct {
	state  byte
	parent int
}

// readStat reads a file like /proc/1/stat. The second field is a name in
// brackets that may hold anything, brackets included.
func readStat(path string) (stat, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return stat{}, err
	}
	end := bytes.LastIndexByte(content, ')')
	fields := bytes.Fields(content[end+1:])
	if end < 0 || len(fields) < 2 {
		return stat{}, fmt.Errorf("%s: not understood", path)
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return stat{state: fields[0][0], parent: parent}, err
}

// descendants returns the processes below one, in no order.
func descendants(root int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // no process
		}
		if s, err := readStat(filepath.Join("/proc", e.Name(), "stat")); err == nil { // else it has ended
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	var found []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		found = append(found, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return found, nil
}

// still reports whether no thread of the process runs.
func still(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, thread := range threads {
		if s, err := readStat(thread); err == nil && s.state != 'T' && !dead(s) { // no thread any more is still, too
			return false
		}
	}
	return true
}

// gone reports whether the process has ended; whether its parent knows is the
// parent's affair.
func gone(pid int) bool {
	s, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || err == nil && dead(s)
}

func dead(s stat) bool { return s.state == 'Z' || s.state == 'X' }

// signal sends a signal to a process that may have ended.
func signal(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}
