// Locks runs deploys and a teardown of one system. Deploys at disjoint paths run side by
// side. A deploy below another one is refused, and the error names the holder. A
// teardown waits until no deploy of its system runs; later deploys do not overtake it.
// After a restart the process acquires the locks of all actions in progress again.
//
// The program prints grants, refusals and releases. It fails if two conflicting locks are
// held at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	s := &service{out: out, monitor: &monitor{out: out, waiting: make(chan struct{}, 1)}}
	s.start(1)
	for _, scenario := range []func(context.Context) error{s.deploys, s.restart, s.teardown} {
		if err := scenario(ctx); err != nil {
			return err
		}
	}
	left, err := s.tree.Snapshot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "end: %d held, %d waiting, %d nodes\n", left.Held, left.Waiting, left.Nodes)
	return s.monitor.verify()
}

// deploys runs three deploys at once, and refuses two that conflict with them.
func (s *service) deploys(ctx context.Context) error {
	fmt.Fprintln(s.out, "three deploys at disjoint paths run at once")
	return errors.Join(
		s.acquireAll(ctx),
		s.refused(ctx, "/shop/api/db", "deploy-4"),
		s.refused(ctx, "/shop", "deploy-5"),
	)
}

// restart drops everything in memory. The new process acquires the locks of all actions
// in progress, and a deploy that repeats its request returns the same lock.
func (s *service) restart(ctx context.Context) error {
	before, err := s.tree.Snapshot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "the process restarts and acquires the locks of all actions in progress")
	s.start(1<<32 + 1)
	if err := errors.Join(s.acquireAll(ctx), s.deploy(ctx, "/shop/web", "deploy-2", "version 7")); err != nil {
		return err
	}
	if token := s.held["deploy-2"].Token(); token <= before.LastToken {
		return fmt.Errorf("token %d of deploy-2 is not greater than token %d", token, before.LastToken)
	}
	fmt.Fprintln(s.out, "  all tokens are greater than the tokens before the restart")
	return nil
}

// teardown waits for two deploys. A later deploy at a free path does not overtake it.
func (s *service) teardown(ctx context.Context) error {
	fmt.Fprintln(s.out, "a teardown waits for two deploys")
	var teardown *lock.Grant
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		teardown, err = s.tree.Lock(ctx, at("/shop"), options("teardown-1", "end of season"))
		return err
	})
	select {
	case <-s.monitor.waiting:
	case <-failed.Done():
		return group.Wait()
	}
	err := errors.Join(
		s.refused(ctx, "/shop/jobs", "deploy-6"),
		s.held["deploy-1"].Unlock(ctx),
		s.held["deploy-2"].Unlock(ctx),
		group.Wait(),
	)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "the teardown ends, and its path is free")
	return errors.Join(
		teardown.Unlock(ctx),
		s.deploy(ctx, "/shop/jobs", "deploy-6", "version 1"),
		s.held["deploy-6"].Unlock(ctx),
		s.held["deploy-3"].Unlock(ctx),
	)
}

// service is one process that runs deploys.
type service struct {
	out     io.Writer
	tree    *lock.Tree
	monitor *monitor
	held    map[string]*lock.Grant // by owner
}

// start creates the lock tree of a new process. Its tokens begin with first: they have to be
// greater than all tokens that earlier processes have granted.
func (s *service) start(first lock.Token) {
	s.monitor.restarted()
	s.tree = lock.Must(&lock.Config{FirstToken: first, Observer: s.monitor.observer()})
	s.held = map[string]*lock.Grant{}
}

// acquireAll acquires the locks of the actions in progress. A real service reads them from its
// store.
func (s *service) acquireAll(ctx context.Context) error {
	return errors.Join(
		s.deploy(ctx, "/shop/api", "deploy-1", "version 12"),
		s.deploy(ctx, "/shop/web", "deploy-2", "version 7"),
		s.deploy(ctx, "/blog", "deploy-3", "first version"),
	)
}

// at returns a request for X at a path, the mode of deploys and teardowns.
func at(path string) lock.Request { return lock.Request{Path: lock.MustParse(path), Mode: lock.X} }

// options returns options with an acquisition id, so that a restarted process can repeat
// the request.
func options(owner, reason string) *lock.Options {
	return &lock.Options{ID: owner, Owner: owner, Reason: reason}
}

// deploy acquires the lock of an action without waiting.
func (s *service) deploy(ctx context.Context, path, owner, reason string) error {
	grant, err := s.tree.TryLock(ctx, at(path), options(owner, reason))
	s.held[owner] = grant
	return err
}

// refused requests a lock that must be refused, and prints the holders in the error.
func (s *service) refused(ctx context.Context, path, owner string) error {
	_, err := s.tree.TryLock(ctx, at(path), options(owner, ""))
	conflict, ok := errors.AsType[*lock.ConflictError](err)
	if !ok {
		return fmt.Errorf("%s at %s was not refused: %w", owner, path, err)
	}
	for _, h := range conflict.Holders {
		verb := "holds"
		if h.Waiting {
			verb = "waits for"
		}
		fmt.Fprintf(s.out, "  %s is refused %v: %s (%s) %s %v\n", owner, at(path), h.Owner, h.Reason, verb,
			lock.Request{Path: h.Path, Mode: h.Mode})
	}
	return nil
}
