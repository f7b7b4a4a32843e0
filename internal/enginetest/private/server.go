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
	"strconv"
	"strings"
	"time"
)

// Server is a database server that belongs to the process that started it. Addr,
// DSN and Log are safe for concurrent use; the other methods are called by one
// goroutine at a time.
type Server struct {
	engine  *engine
	dir     string // of everything it has
	data    string // in dir
	owner   owner
	guard   *guard
	port    int
	process *process // the last one that was started; nil before
}

// start makes the data, and starts the server on it for the first time.
func start(e *engine) (_ *Server, err error) {
	owner, err := ordinary(e.users)
	if err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	dir, err := os.MkdirTemp("", "interlock-")
	if err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	s := &Server{engine: e, dir: dir, owner: owner}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	real, err := filepath.EvalSymlinks(dir) // as the server will say it
	if err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	s.dir = real
	s.data = filepath.Join(s.dir, "data")
	if s.guard, err = newGuard(s.dir); err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	if err := owner.own(s.dir); err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	if err := s.create(); err != nil {
		return nil, fmt.Errorf("private: %s: %w", e.name, err)
	}
	// Between the look for a free port and the start somebody else may take it.
	// Another port helps; what else is wrong stays wrong, and is reported.
	for range 3 {
		if s.port, err = freePort(); err != nil {
			return nil, fmt.Errorf("private: %s: %w", e.name, err)
		}
		if err = s.Start(); err == nil || s.Running() {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// freePort returns a port below those that the system gives to clients. With a
// port of theirs a client that calls a dead server again and again would one day
// be given the server's own port, be connected to itself, and keep the server
// from starting.
func freePort() (int, error) {
	var refused error
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			refused = err
			continue
		}
		return port, l.Close()
	}
	return 0, refused
}

func (s *Server) create() error {
	command := s.engine.create(s.data)
	p, err := s.run(command)
	if err != nil {
		return err
	}
	ended, err := p.wait(patience)
	if !ended {
		return errors.Join(fmt.Errorf("%s: not done after %s", command[0], patience), p.kill())
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command[0], err, s.Log())
	}
	return nil
}

// run starts a command as the server's user, in its directory and without our
// environment, which could change what an engine does.
func (s *Server) run(command []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	env := []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH") + ":/usr/bin:/bin", "HOME=" + s.dir, "TMPDIR=" + s.dir}
	p, err := launch(command, s.dir, env, log, s.owner, s.guard)
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", s.dir, err) // which may be where the server's user must not be
	}
	return p, nil
}

// Running reports whether the server has a process, paused or not.
func (s *Server) Running() bool { return s.process != nil && s.process.running() }

// Addr returns the TCP address, host and port. It stays the same.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN returns what the driver (pgx for PostgreSQL, mysql for MariaDB) opens the
// server with, as a user who may do everything. It stays the same, and holds
// [Server.Addr] literally: who puts a proxy in between replaces that.
func (s *Server) DSN() string { return s.engine.dsn(s.port) }

// Log returns the end of what the server wrote, and "" when there is nothing.
func (s *Server) Log() string {
	content, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return ""
	}
	const enough = 4 << 10
	return strings.ToValidUTF8(string(content[max(0, len(content)-enough):]), "?")
}

// Start starts a server that was stopped or killed, on the same data and the
// same address, and returns when it answers. Errors: [ErrState] when it runs;
// another when it does not answer within a minute, after which it does not run
// unless its end failed too.
func (s *Server) Start() error {
	if s.Running() {
		return fmt.Errorf("%w: start: %s runs", ErrState, s.engine.name)
	}
	p, err := s.run(s.engine.serve(s.data, s.port))
	if err != nil {
		return fmt.Errorf("private: start %s: %w", s.engine.name, err)
	}
	s.process = p
	if err := s.answers(); err != nil {
		err = fmt.Errorf("private: start %s: %w\n%s", s.engine.name, err, s.Log())
		if s.Running() {
			err = errors.Join(err, s.Kill())
		}
		return err
	}
	return nil
}

// answers waits until our server answers. Whose server it is has to be asked:
// if somebody took the port before ours did, his answers while ours ends.
func (s *Server) answers() error {
	db, err := sql.Open(s.engine.driver, s.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(0)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		data, err := s.ask(db)
		switch {
		case err == nil && same(data, s.data):
			return nil
		case err == nil:
			return fmt.Errorf("on %s another server answers", s.Addr())
		case !s.Running():
			return errors.New("it ended")
		case time.Now().After(end):
			return fmt.Errorf("no answer after %s: %w", patience, err)
		}
	}
}

func (s *Server) ask(db *sql.DB) (data string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = db.QueryRowContext(ctx, s.engine.where).Scan(&data)
	return data, err
}

// Stop ends the server in order: what is open is rolled back, and the next start
// has nothing to recover. A paused server goes on first. Errors: [ErrState] when
// it does not run; another when it had to be killed after a minute.
func (s *Server) Stop() error {
	if err := s.must("stop"); err != nil {
		return err
	}
	err := s.process.resume()
	if err == nil {
		err = s.engine.end(s.process)
	}
	if err == nil {
		if ended, _ := s.process.wait(patience); ended {
			return nil
		}
		err = fmt.Errorf("not done after %s", patience)
	}
	return errors.Join(fmt.Errorf("private: stop %s: %w", s.engine.name, err), s.Kill())
}

// Kill ends all processes of the server at once with SIGKILL, paused or not, and
// returns when none is left. Errors: [ErrState] when it does not run; another
// when a process is still there after a minute.
func (s *Server) Kill() error {
	if err := s.must("kill"); err != nil {
		return err
	}
	err := s.process.kill()
	if err == nil && s.engine.after != nil {
		err = s.engine.after(s.data)
	}
	if err != nil {
		return fmt.Errorf("private: kill %s: %w", s.engine.name, err)
	}
	return nil
}

// Pause stops all processes of the server with SIGSTOP, and returns when none
// runs: connections stay open, and nobody answers. Errors: [ErrState] when it
// does not run or is paused already; another when a process still runs after a
// minute, after which all of them go on.
func (s *Server) Pause() error {
	if err := s.must("pause"); err != nil {
		return err
	}
	if s.process.paused() {
		return fmt.Errorf("%w: pause: %s is paused", ErrState, s.engine.name)
	}
	if err := s.process.pause(); err != nil {
		return fmt.Errorf("private: pause %s: %w", s.engine.name, errors.Join(err, s.process.resume()))
	}
	return nil
}

// Continue lets a paused server go on with SIGCONT. Errors: [ErrState] when it
// is not paused.
func (s *Server) Continue() error {
	if err := s.must("continue"); err != nil {
		return err
	}
	if !s.process.paused() {
		return fmt.Errorf("%w: continue: %s is not paused", ErrState, s.engine.name)
	}
	if err := s.process.resume(); err != nil {
		return fmt.Errorf("private: continue %s: %w", s.engine.name, err)
	}
	return nil
}

// Close kills the server if it runs, and removes all that it has. It may be
// called again, also after an error.
func (s *Server) Close() error {
	var err error
	if s.Running() {
		err = s.Kill()
	}
	if removed := os.RemoveAll(s.dir); removed != nil {
		err = errors.Join(err, fmt.Errorf("private: close %s: %w", s.engine.name, removed))
	}
	if s.guard != nil && err == nil { // else it has something to do when we end
		if err = s.guard.dismiss(); err != nil {
			err = fmt.Errorf("private: close %s: %w", s.engine.name, err)
		}
		s.guard = nil
	}
	return err
}

func (s *Server) must(do string) error {
	if !s.Running() {
		return fmt.Errorf("%w: %s: %s does not run", ErrState, do, s.engine.name)
	}
	return nil
}
