package private

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is a database server that belongs to the process that started it. Addr, DSN and
// Log are safe for concurrent use; the other methods are called by one goroutine at a time.
type Server struct {
	engine  *engine
	dir     string // of everything that the server has
	data    string // in dir
	user    user
	port    int
	process *process // the last one that was started; nil before
}

// start creates the data, and starts the server for the first time.
func start(e *engine) (_ *Server, err error) {
	s := &Server{engine: e}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("private: start %s: %w", e.name, err), s.Close())
		}
	}()
	if s.user, err = ordinaryUser(e.users); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "interlock-")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil { // as the server reports it
		return nil, err
	}
	s.data = filepath.Join(s.dir, "data")
	if err := s.user.own(s.dir); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, err
	}
	// Another process may take the port before the server listens on it.
	for range 3 {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = s.Start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// freePort returns a port below those that the system gives to clients. A client that
// calls a dead server could otherwise be given the port of the server.
func freePort() (int, error) {
	var refused error
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		refused = err
	}
	return 0, refused
}

func (s *Server) create() error {
	command := s.engine.create(s.data)
	p, err := s.run(command)
	if err != nil {
		return err
	}
	if !p.wait() {
		return errors.Join(fmt.Errorf("%s: not done after %s", command[0], patience), p.kill(s.dir))
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", command[0], p.err, s.Log())
	}
	return nil
}

// run starts a command as the server's user, in its directory and without the environment
// of this process, which could change what an engine does.
func (s *Server) run(command []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	env := []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH") + ":/usr/bin:/bin", "HOME=" + s.dir, "TMPDIR=" + s.dir}
	return launch(command, s.dir, env, log, s.user)
}

func (s *Server) running() bool { return s.process != nil && s.process.running() }

// Addr returns the TCP address, host and port. It never changes.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN returns what the driver (pgx for PostgreSQL, mysql for MariaDB) opens the server
// with, as a user with all rights. It never changes, and contains [Server.Addr].
func (s *Server) DSN() string { return s.engine.dsn(s.port) }

// Log returns the end of what the server wrote.
func (s *Server) Log() string {
	content, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(content[max(0, len(content)-4<<10):]), "?")
}

// Start starts a server that was killed, on the same data and the same address, and
// returns when it answers. After an error the server does not run. The error is that of a
// server that runs already, or does not answer within a minute.
func (s *Server) Start() error {
	if s.running() {
		return fmt.Errorf("private: start %s: it runs already", s.engine.name)
	}
	p, err := s.run(s.engine.serve(s.data, s.port))
	if err != nil {
		return fmt.Errorf("private: start %s: %w", s.engine.name, err)
	}
	s.process = p
	if err := s.awaitAnswer(); err != nil {
		return errors.Join(fmt.Errorf("private: start %s: %w\n%s", s.engine.name, err, s.Log()), s.Kill())
	}
	return nil
}

// awaitAnswer waits until this server answers: another one may have taken the port.
func (s *Server) awaitAnswer() error {
	db, err := sql.Open(s.engine.driver, s.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(0)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var data string
		err := db.QueryRowContext(ctx, s.engine.where).Scan(&data)
		cancel()
		switch {
		case err == nil && filepath.Clean(data) == filepath.Clean(s.data):
			return nil
		case err == nil:
			return fmt.Errorf("on %s another server answers", s.Addr())
		case !s.running():
			return errors.New("it has ended")
		case time.Now().After(end):
			return fmt.Errorf("no answer after %s: %w", patience, err)
		}
	}
}

// Kill ends all processes of the server with SIGKILL, and returns when none is left. It is
// no error if the server does not run.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	if err := s.process.kill(s.dir); err != nil {
		return fmt.Errorf("private: kill %s: %w", s.engine.name, err)
	}
	return nil
}

// fullAt is the size of a full file. It is more than a segment of PostgreSQL's log, which
// must have room: without it, the server ends as by Kill.
const fullAt = 17 << 20

// Fill fills tables of a PostgreSQL server as a full disk does: a statement that needs a new
// page of them fails. The statements, which insert $1 rows, are repeated until none finds
// room for one more row. Room ends that.
func (s *Server) Fill(db *sql.DB, inserts ...string) (room func() error, err error) {
	if err := s.limitFiles(strconv.Itoa(fullAt)); err != nil {
		return nil, err
	}
	for _, insert := range inserts {
		for rows := 10_000; rows > 0; rows /= 10 {
			for err = nil; err == nil; {
				_, err = db.Exec(insert, rows)
			}
		}
		if !strings.Contains(err.Error(), "could not extend file") {
			return nil, fmt.Errorf("private: fill: %w", err)
		}
	}
	return func() error { return s.limitFiles("unlimited") }, nil
}

// limitFiles limits the size of the files that the processes of the server write. The first
// process comes first: the others are listed when what it starts has the limit.
func (s *Server) limitFiles(size string) error {
	limit := func(pid int) error {
		p, err := s.run([]string{"prlimit", "--fsize=" + size + ":", "--pid", strconv.Itoa(pid)})
		if err != nil {
			return fmt.Errorf("private: limit files: %w", err)
		}
		if p.wait(); p.err != nil && slices.Contains(processesIn(s.dir), pid) {
			return fmt.Errorf("private: limit files of process %d: %w", pid, p.err)
		}
		return nil
	}
	err := limit(s.process.pid())
	for _, pid := range processesIn(s.dir) {
		err = errors.Join(err, limit(pid))
	}
	return err
}

// Close ends the server in order, or kills it after a minute, and removes all that it has.
// It may be called again.
func (s *Server) Close() error {
	if s.running() && s.process.signal(s.engine.stop) == nil {
		s.process.wait()
	}
	err := s.Kill()
	if s.dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
