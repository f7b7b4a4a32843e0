// Locks runs deploys and a teardown of one system. Deploys at disjoint paths run side by
// side. A deploy below another one is refused, and the error names the holder. A
// teardown waits until no deploy of its system runs; later deploys do not overtake it.
// After a restart the process takes the locks of all actions in progress again.
//
// The program prints each refusal, and a time line of what each action held. It fails
// if two conflicting locks were held at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

// at returns a request for X at a path, the mode of deploys and teardowns.
func at(path string) lock.Request { return lock.Request{Path: lock.MustParse(path), Mode: lock.X} }

// by returns options with an acquisition id, so that a restarted process can repeat the
// request.
func by(owner, reason string) *lock.Options {
	return &lock.Options{ID: owner, Owner: owner, Reason: reason}
}

func run(ctx context.Context, out io.Writer) error {
	line := newTimeLine()
	s := &story{line: line, out: out}
	s.start()

	s.say("two deploys of one system at disjoint paths, and one of another system")
	s.deploy(ctx, "/shop/api", "deploy-1", "version 12")
	s.deploy(ctx, "/shop/web", "deploy-2", "version 7")
	s.deploy(ctx, "/blog", "deploy-3", "first version")

	s.say("a deploy below deploy-1, and a deploy of the whole shop")
	s.refused(ctx, "/shop/api/db", "deploy-4")
	s.refused(ctx, "/shop", "deploy-5")

	s.say("the process restarts and takes the locks of all actions in progress again")
	before := s.restart(ctx)
	s.say("deploy-2 repeats its request with the same id")
	web := s.deploy(ctx, "/shop/web", "deploy-2", "version 7")
	if s.err == nil {
		fmt.Fprintf(out, "  granted, with a token greater than all earlier tokens: %t\n", web.Token() > before)
	}

	s.say("a teardown of the shop waits for two deploys")
	down := s.wait(ctx, "/shop", "teardown-1", "end of season")

	s.say("a deploy at a free path does not overtake it")
	s.refused(ctx, "/shop/jobs", "deploy-6")

	s.say("deploy-1 ends, then deploy-2: the teardown is granted")
	s.end(ctx, "deploy-1")
	s.end(ctx, "deploy-2")
	s.granted(down)
	s.refused(ctx, "/shop/web", "deploy-7")

	s.say("the teardown ends, and the path is free")
	s.end(ctx, "teardown-1")
	s.deploy(ctx, "/shop/jobs", "deploy-6", "version 1")
	s.end(ctx, "deploy-6")
	s.end(ctx, "deploy-3")
	if s.err != nil {
		return s.err
	}

	left, err := s.tree.Snapshot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nleft: %d held, %d waiting, %d nodes\n\n", left.Held, left.Waiting, left.Nodes)
	line.draw(out)
	return line.verify()
}

// story performs steps until one fails.
type story struct {
	tree     *lock.Tree
	line     *timeLine
	out      io.Writer
	restarts lock.Token
	records  []record // of the actions in progress; a service keeps them in its store
	held     map[string]*lock.Grant
	err      error
}

// record is an action in progress. It survives a restart of the process.
type record struct{ path, owner, reason string }

func (s *story) say(what string) {
	if s.err == nil {
		fmt.Fprintf(s.out, "%s\n", what)
	}
}

// start creates the lock tree of a new process. Its tokens are greater than all that an
// earlier process has granted.
func (s *story) start() {
	s.tree = lock.Must(&lock.Config{FirstToken: s.restarts<<32 + 1, Observer: s.line.observer()})
	s.held = map[string]*lock.Grant{}
}

// restart drops everything in memory and takes the locks of all actions in progress
// again. It returns the last token of the old process.
func (s *story) restart(ctx context.Context) lock.Token {
	if s.err != nil {
		return 0
	}
	was, err := s.tree.Snapshot(ctx)
	s.restarts++
	s.start()
	s.err = err
	for _, r := range s.records {
		h, err := s.tree.TryLock(ctx, at(r.path), by(r.owner, r.reason))
		s.held[r.owner] = h
		s.err = errors.Join(s.err, err)
	}
	s.line.step()
	return was.LastToken
}

// deploy takes the path without waiting. A repeated request returns the same lock.
func (s *story) deploy(ctx context.Context, path, owner, reason string) *lock.Grant {
	if s.err != nil {
		return nil
	}
	h, err := s.tree.TryLock(ctx, at(path), by(owner, reason))
	if s.err = err; err == nil && s.held[owner] == nil {
		s.records = append(s.records, record{path, owner, reason})
	}
	s.held[owner] = h
	s.line.step()
	return h
}

// refused tries to take the path and prints the holders in the error.
func (s *story) refused(ctx context.Context, path, owner string) {
	if s.err != nil {
		return
	}
	_, err := s.tree.TryLock(ctx, at(path), by(owner, ""))
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

// acquired is the result of a request that waits.
type acquired struct {
	owner string
	held  *lock.Grant
	err   error
}

// wait requests the path in a goroutine, and returns when the request is in the queue.
// The goroutine ends with the request.
func (s *story) wait(ctx context.Context, path, owner, reason string) <-chan acquired {
	if s.err != nil {
		return nil
	}
	result := make(chan acquired, 1)
	go func() {
		h, err := s.tree.Lock(ctx, at(path), by(owner, reason))
		result <- acquired{owner, h, err}
	}()
	select {
	case <-s.line.queued:
	case got := <-result:
		s.err = errors.Join(fmt.Errorf("%s did not wait", owner), got.err)
	}
	s.line.step()
	return result
}

// granted waits for the result of a request.
func (s *story) granted(result <-chan acquired) {
	if s.err != nil {
		return
	}
	got := <-result
	if s.err = got.err; got.err == nil {
		s.held[got.owner] = got.held
	}
	s.line.step()
}

// end removes the record of an action and releases its lock.
func (s *story) end(ctx context.Context, owner string) {
	if s.err == nil {
		s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.owner == owner })
		s.err = s.held[owner].Unlock(ctx)
		s.line.step()
	}
}
