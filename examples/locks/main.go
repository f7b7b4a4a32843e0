// Locks runs deploys and a teardown of one system against each other: deploys at
// disjoint paths run side by side, one below another is refused and learns who is
// in the way, a teardown waits its turn and is then alone, nobody overtakes it,
// and a process that restarts finds the lock that it had.
//
// It prints the story and a time line of who held what, and fails if two that
// conflict ever held at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/interlock-go/interlock/lock"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

// at is X at a path, which is what deploys and teardowns take.
func at(path string) lock.Request { return lock.Request{Path: lock.MustParse(path), Mode: lock.X} }

// by names an acquisition, so that a restarted process can repeat it.
func by(owner, reason string) *lock.Options {
	return &lock.Options{ID: owner, Owner: owner, Reason: reason}
}

func run(ctx context.Context, out io.Writer) error {
	line := newTimeLine()
	tree := lock.NewTree(&lock.Config{Observer: line.observer()})
	s := &story{ctx: ctx, tree: tree, line: line, out: out}

	s.say("two deploys of one system at disjoint paths, and one of another system")
	api := s.deploy("/shop/api", "deploy-1", "version 12")
	web := s.deploy("/shop/web", "deploy-2", "version 7")
	blog := s.deploy("/blog", "deploy-3", "first version")

	s.say("a deploy below deploy-1, and one of everything above it")
	s.refused("/shop/api/db", "deploy-4")
	s.refused("/shop", "deploy-5")

	s.say("a teardown of the shop waits for the deploys that run")
	down := s.wait("/shop", "teardown-1", "end of season")

	s.say("a deploy at a free path does not overtake it")
	s.refused("/shop/jobs", "deploy-6")

	s.say("the process of deploy-2 dies and starts again: it asks as it did before")
	again := s.deploy("/shop/web", "deploy-2", "version 7")
	if s.err == nil {
		fmt.Fprintf(out, "  it has the lock with token %d, and had it with token %d\n", again.Token(), web.Token())
	}

	s.say("deploy-1 ends, then deploy-2: now the teardown is alone in its system")
	s.end(api)
	s.end(again)
	gone := s.granted(down)
	s.refused("/shop/web", "deploy-7")

	s.say("the teardown ends, and the path is free")
	s.end(gone)
	jobs := s.deploy("/shop/jobs", "deploy-6", "version 1")
	s.end(jobs)
	s.end(blog)
	if s.err != nil {
		return s.err
	}

	left, err := tree.Snapshot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nleft: %d held, %d waiting, %d nodes\n\n", left.Held, left.Waiting, left.Nodes)
	line.draw(out)
	return line.verify()
}

// story tells steps until one goes wrong.
type story struct {
	ctx  context.Context
	tree *lock.Tree
	line *timeLine
	out  io.Writer
	err  error
}

func (s *story) say(what string) {
	if s.err == nil {
		fmt.Fprintf(s.out, "%s\n", what)
	}
}

// deploy takes the path at once.
func (s *story) deploy(path, owner, reason string) *lock.Held {
	if s.err != nil {
		return nil
	}
	h, err := s.tree.TryLock(s.ctx, at(path), by(owner, reason))
	s.err = err
	s.line.step()
	return h
}

// refused tries to take the path and tells who is in the way.
func (s *story) refused(path, owner string) {
	if s.err != nil {
		return
	}
	_, err := s.tree.TryLock(s.ctx, at(path), by(owner, ""))
	conflict, ok := errors.AsType[*lock.ConflictError](err)
	if !ok {
		s.err = fmt.Errorf("%s should have been refused at %s: %w", owner, path, err)
		return
	}
	for _, h := range conflict.Holders {
		how := "holds"
		if h.Waiting {
			how = "waits for"
		}
		fmt.Fprintf(s.out, "  %s is refused %v: %s (%s) %s %v\n", owner, at(path), h.Owner, h.Reason, how,
			lock.Request{Path: h.Path, Mode: h.Mode})
	}
	s.line.step()
}

// acquired is the end of a wait.
type acquired struct {
	held *lock.Held
	err  error
}

// wait asks for the path in a goroutine of its own, and returns when that stands
// in the queue. The goroutine ends with the wait.
func (s *story) wait(path, owner, reason string) <-chan acquired {
	if s.err != nil {
		return nil
	}
	result := make(chan acquired, 1)
	go func() {
		h, err := s.tree.Lock(s.ctx, at(path), by(owner, reason))
		result <- acquired{h, err}
	}()
	select {
	case <-s.line.queued:
	case got := <-result:
		s.err = errors.Join(fmt.Errorf("%s did not wait", owner), got.err)
	}
	s.line.step()
	return result
}

// granted returns what was waited for.
func (s *story) granted(result <-chan acquired) *lock.Held {
	if s.err != nil {
		return nil
	}
	got := <-result
	s.err = got.err
	s.line.step()
	return got.held
}

// end unlocks.
func (s *story) end(h *lock.Held) {
	if s.err == nil {
		s.err = h.Unlock(s.ctx)
		s.line.step()
	}
}
