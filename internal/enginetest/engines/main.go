// Command engines runs a command with the engines of this machine:
//
//	go run ./engines make -C ../.. test
//
// For each engine, the first of these servers is used:
//   - the server whose DSN is in the environment;
//   - a server of this machine that listens on the usual port and accepts connections
//     without a password;
//   - a server that is started from the installed binaries in a directory of its own, and
//     is removed after the command. Its commits do not wait for the disk.
//
// The command gets INTERLOCK_POSTGRES_DSN and INTERLOCK_MYSQL_DSN. The variable of an
// engine that is not installed is not set.
//
// The exit status is that of the command. It is 2 if a server did not start, and then the
// command does not run, and if the command did not run or was killed.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/interlock-go/interlock/internal/enginetest/private"
)

// engine is a server that the command is to have.
type engine struct {
	name     string
	variable string // of the environment: its DSN
	driver   string
	usual    string // DSN of one that the machine may run
	start    func(*private.Config) (*private.Server, error)
}

var all = []engine{
	{"PostgreSQL", "INTERLOCK_POSTGRES_DSN", "pgx", "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable", private.StartPostgres},
	{"MariaDB or MySQL", "INTERLOCK_MYSQL_DSN", "mysql", "root@tcp(127.0.0.1:3306)/", private.StartMariaDB},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: engines COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	// A refused connection is not an error here.
	_ = mysql.SetLogger(log.New(io.Discard, "", 0))
	// A terminal sends an interrupt to the command too, and this process ends with the
	// command. SIGTERM is forwarded. A signal that is ignored would be ignored by the
	// command too, so the interrupt is received and dropped.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	status := run(ctx, all, os.Args[1:], os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the command with the engines and returns the exit status. When the context
// ends, run sends SIGTERM to the command.
func run(ctx context.Context, engines []engine, command []string, log io.Writer) int {
	env := os.Environ()
	for _, e := range engines {
		dsn, how, end, err := e.find()
		if err != nil {
			fmt.Fprintln(log, "engines:", err)
			return 2
		}
		defer func() {
			if err := end(); err != nil {
				fmt.Fprintln(log, "engines:", err)
			}
		}()
		fmt.Fprintf(log, "engines: %s: %s\n", e.name, how)
		if dsn != "" {
			env = append(env, e.variable+"="+dsn)
		}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.Exited():
		return ended.ExitCode()
	default:
		fmt.Fprintln(log, "engines:", err)
		return 2
	}
}

// find returns the DSN of a server, "" if there is none, and how it was found.
func (e engine) find() (dsn, how string, end func() error, err error) {
	nothing := func() error { return nil }
	if dsn := os.Getenv(e.variable); dsn != "" {
		return dsn, "the one of " + e.variable, nothing, nil
	}
	if e.answers() {
		return e.usual, "the one of this machine", nothing, nil
	}
	s, err := e.start(&private.Config{Fast: true})
	switch {
	case errors.Is(err, private.ErrMissing):
		return "", "missing: " + err.Error(), nothing, nil
	case err != nil:
		return "", "", nil, err
	}
	return s.DSN(), "started for this command", s.Close, nil
}

// answers reports whether the usual server accepts a connection.
func (e engine) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	db, err := sql.Open(e.driver, e.usual)
	if err != nil {
		return false
	}
	defer db.Close()
	return db.PingContext(ctx) == nil
}
