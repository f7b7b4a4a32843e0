package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// the provider migrates vm-1, which keeps its state; a user destroys it meanwhile
	// a second user is too late
	//   stop is refused: cannot execute action at this time: vm-1 is DESTROYING; migrate runs, 1 waiting
	// a disk moves from vm-2 to vm-3: each action takes the disk and the VM
	// a region takes two at a time; another region does not wait for it
	// one by one they end, and what waited for nothing else begins
	//
	// vm-1 DESTROYED, vm-2 RUNNING, vm-3 RUNNING, vm-4 RUNNING, vm-5 RUNNING, vm-6 RUNNING, vm-7 RUNNING
	//
	// migrate      vm-1         | ████████████       |
	// destroy      vm-1         |  ···········██████ |
	// detach       disk-1 vm-2  |    ███████         |
	// attach       disk-1 vm-3  |     ······████     |
	// reboot       vm-2         |      ·····███      |
	// create-vm-4  vm-4         |       █████        |
	// create-vm-5  vm-5         |        █████████   |
	// create-vm-6  vm-6         |         ···██████  |
	// create-vm-7  vm-7         |          ██████    |
	//                            █ runs  · waits
}

// verify is what makes the program fail, so it must see what is wrong.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	l := newTimeLine()
	l.spans = []*span{
		{"a", []string{"disk", "vm-1"}, 0, 0, 3},
		{"b", []string{"vm-2"}, 0, 1, 3},
		{"c", []string{"disk", "vm-2"}, 1, 3, 4},
	}
	require.NoError(t, l.verify())
	l.spans[2].starts = 2
	require.ErrorContains(t, l.verify(), "a and c were at one object at once")
	l.spans[2].ends = -1
	require.ErrorContains(t, l.verify(), "c has not ended")

	w := &world{states: map[string]string{"vm-1": "DESTROYED", "vm-2": "RUNNING"}}
	require.NoError(t, w.verify())
	w.states["vm-2"] = "REBOOTING"
	require.ErrorContains(t, w.verify(), "vm-2 ended as REBOOTING")
}
