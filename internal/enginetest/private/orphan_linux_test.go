package private_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
)

// With this variable the test binary is a program that starts a server and dies.
const orphaning = "PRIVATE_TEST_ORPHANS"

func TestMain(m *testing.M) {
	if how := os.Getenv(orphaning); how != "" {
		orphan(how)
	}
	os.Exit(m.Run())
}

// orphan starts a server, prints the process ids and the directory of it, and
// dies as it is told.
func orphan(how string) {
	engine, how, _ := strings.Cut(how, " ")
	start := private.StartPostgres
	if engine == "mysql" {
		start = private.StartMariaDB
	}
	s, err := start(&private.Config{Fast: true})
	if errors.Is(err, private.ErrMissing) {
		fmt.Println("missing")
		os.Exit(1)
	}
	if err != nil {
		panic(err)
	}
	if strings.HasPrefix(how, "paused") {
		if err := s.Pause(); err != nil {
			panic(err)
		}
	}
	pids, err := private.Processes(s)
	if err != nil {
		panic(err)
	}
	fmt.Println(private.Dir(s), pids)
	if how == "panics" {
		panic("dies on purpose")
	}
	select {} // until it is killed
}

// Nothing runs when the process that started it is gone, however it went.
func TestNoOrphans(t *testing.T) {
	for _, e := range engines {
		if e.config == nil {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			for _, how := range []string{"panics", "paused, killed"} {
				t.Run(how, func(t *testing.T) {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), orphaning+"="+e.driver+" "+how)
					out, err := cmd.StdoutPipe()
					require.NoError(t, err)
					require.NoError(t, cmd.Start())
					line, err := bufio.NewReader(out).ReadString('\n')
					require.NoError(t, err)
					if line == "missing\n" {
						require.Error(t, cmd.Wait())
						e.start(t, e.config) // says so
					}
					dir, list, _ := strings.Cut(strings.TrimSuffix(line, "]\n"), " [")
					if strings.HasSuffix(how, "killed") {
						require.NoError(t, cmd.Process.Kill())
					}
					require.Error(t, cmd.Wait())

					pids := strings.Fields(list)
					require.NotEmpty(t, pids)
					for _, pid := range pids {
						var number int
						_, err := fmt.Sscan(pid, &number)
						require.NoError(t, err)
						require.Eventually(t, func() bool { return private.Gone(number) }, time.Minute, 10*time.Millisecond, "process %s", pid)
					}
					require.Eventually(t, func() bool {
						_, err := os.Stat(dir)
						return errors.Is(err, os.ErrNotExist)
					}, time.Minute, 10*time.Millisecond, dir)
				})
			}
		})
	}
}
