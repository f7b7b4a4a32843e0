package private

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard is a shell that outlives us if we die, and takes away what we would have
// taken away. The kernel kills the server then, and the server's other processes
// end when they notice; but those that are stopped never notice, and files and
// shared memory stay.
type guard struct {
	cmd   *exec.Cmd
	lines *os.File // what it reads: nobody else has this end, so it ends with us
}

// It reads lines: the processes that are stopped, or that it is not needed. When
// its input ends without that, we are gone. A process that is being killed may
// still make a file, therefore more than one attempt.
const guarding = `
stopped=
while read -r line; do
	case $line in dismissed) exit 0 ;; esac
	stopped=$line
done
[ -z "$stopped" ] || kill -KILL $stopped
segment=$(sed -n '7s/.* //p' "$0/data/postmaster.pid")
[ -z "$segment" ] || ipcrm -m "$segment"
for attempt in 1 2 3 4 5 6 7 8 9 10; do
	! rm -rf "$0" || exit 0
	sleep 1
done`

// newGuard starts the guard of a directory.
func newGuard(dir string) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", guarding, dir)
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what kills our group spares it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return &guard{cmd: cmd, lines: write}, nil
}

// watch says which processes are stopped, instead of those before.
func (g *guard) watch(pids []int) error {
	line := ""
	for _, pid := range pids {
		line += fmt.Sprintf("%d ", pid)
	}
	_, err := g.lines.WriteString(line + "\n")
	return err
}

// dismiss ends the guard.
func (g *guard) dismiss() error {
	_, err := g.lines.WriteString("dismissed\n")
	return errors.Join(err, g.lines.Close(), g.cmd.Wait())
}
