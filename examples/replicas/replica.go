package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// build builds examples/service in a directory.
func build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "service")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "../service", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of ../service: %w\n%s", err, out)
	}
	return program, nil
}

// replica is one process after another, under one name and address.
type replica struct {
	name    string
	address string
	network *proxy
	start   func() (*exec.Cmd, error)
	process *exec.Cmd
	ended   chan struct{} // closed: there is no process
}

// start starts the replicas, the first one with a migration. Their processes end with ctx.
func (w *world) start(ctx context.Context, program string, db *url.URL, provider string) error {
	for _, name := range []string{"a", "b", "c"} {
		log, err := os.Create(filepath.Join(filepath.Dir(program), name+".log"))
		if err != nil {
			return err
		}
		w.atEnd(log.Close)
		r := &replica{name: name, ended: make(chan struct{})}
		close(r.ended)
		if r.network, err = newProxy(net.JoinHostPort(db.Hostname(), cmp.Or(db.Port(), "5432"))); err != nil {
			return err
		}
		w.atEnd(r.network.stop)
		behind := *db
		behind.Host = r.network.listener.Addr().String()
		listener, err := net.Listen("tcp", "127.0.0.1:0") // an address that is free
		if err != nil {
			return err
		}
		r.address = listener.Addr().String()
		_ = listener.Close()
		r.start = func() (*exec.Cmd, error) {
			cmd := exec.CommandContext(ctx, program, "-name", name, "-addr", r.address, "-db", behind.String(), "-provider", provider,
				"-ttl", ttl.String(), "-delay", "500ms", "-workers", "64", "-migrate="+strconv.FormatBool(name == "a"))
			cmd.Stderr, cmd.WaitDelay = log, 15*time.Second // then it is killed
			cmd.Cancel = func() error {
				return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Process.Signal(syscall.SIGCONT))
			}
			return cmd, cmd.Start()
		}
		w.replicas = append(w.replicas, r)
		if err := w.await(ctx, "an answer of replica "+name, r.answers); err != nil {
			return err
		}
	}
	return nil
}

// revive starts the replicas whose processes have ended, as an orchestrator does.
func (w *world) revive() error {
	for _, r := range w.replicas {
		if r == w.struck || !r.hasEnded() {
			continue
		}
		if r.process != nil {
			w.printf("%s: starts again after %v", r.name, r.process.ProcessState)
		}
		cmd, err := r.start()
		if err != nil {
			return err
		}
		ended := make(chan struct{})
		r.process, r.ended = cmd, ended
		go func() { // until the process ends, for which run waits
			_ = cmd.Wait() // the state has the error
			close(ended)
		}()
	}
	return nil
}

// hasEnded reports whether the replica has no process.
func (r *replica) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal, unless the process has ended.
func (r *replica) signal(signal os.Signal) { _ = r.process.Process.Signal(signal) }

// answers reports whether the replica answers.
func (r *replica) answers() (bool, error) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + r.address + "/vms?limit=1")
	if err != nil {
		return false, nil
	}
	return answer.StatusCode == http.StatusOK, answer.Body.Close()
}
