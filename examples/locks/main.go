// Locks runs deploys and a teardown of one system against each other: deploys at
// disjoint paths run side by side, one below another is refused and learns who is
// in the way, a teardown waits its turn and is then alone, nobody overtakes it,
// and after a restart of the process the locks of what is in progress are taken
// again, and asking for one a second time finds it.
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
	"slices"

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
	s := &story{ctx: ctx, line: line, out: out}
	s.start()

	s.say("two deploys of one system at disjoint paths, and one of another system")
	s.deploy("/shop/api", "deploy-1", "version 12")
	s.deploy("/shop/web", "deploy-2", "version 7")
	s.deploy("/blog", "deploy-3", "first version")

	s.say("a deploy below deploy-1, and one of everything above it")
	s.refused("/shop/api/db", "deploy-4")
	s.refused("/shop", "deploy-5")

	s.say("the process restarts: its records say what was in progress, and take it again")
	before := s.restart()
	s.say("deploy-2 does not know whether it was granted, and asks as it did before")
	web := s.deploy("/shop/web", "deploy-2", "version 7")
	if s.err == nil {
		fmt.Fprintf(out, "  it has the lock, with a token above all from before: %t\n", web.Token() > before)
	}

	s.say("a teardown of the shop waits for the deploys that run")
	down := s.wait("/shop", "teardown-1", "end of season")

	s.say("a deploy at a free path does not overtake it")
	s.refused("/shop/jobs", "deploy-6")

	s.say("deploy-1 ends, then deploy-2: now the teardown is alone in its system")
	s.end("deploy-1")
	s.end("deploy-2")
	s.granted(down)
	s.refused("/shop/web", "deploy-7")

	s.say("the teardown ends, and the path is free")
	s.end("teardown-1")
	s.deploy("/shop/jobs", "deploy-6", "version 1")
	s.end("deploy-6")
	s.end("deploy-3")
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

// story tells steps until one goes wrong.
type story struct {
	ctx      context.Context // of one run, which is one call
	tree     *lock.Tree
	line     *timeLine
	out      io.Writer
	restarts lock.Token
	records  []record // of what is in progress: a service has them in its store
	held     map[string]*lock.Grant
	err      error
}

// record is an action in progress, as it survives the process.
type record struct{ path, owner, reason string }

func (s *story) say(what string) {
	if s.err == nil {
		fmt.Fprintf(s.out, "%s\n", what)
	}
}

// start makes the locks of a new process. Its tokens are above all that another
// has granted before it.
func (s *story) start() {
	s.tree = lock.Must(&lock.Config{FirstToken: s.restarts<<32 + 1, Observer: s.line.observer()})
	s.held = map[string]*lock.Grant{}
}

// restart loses everything that was in memory, and takes the locks of all that is
// in progress again. It returns the last token from before.
func (s *story) restart() lock.Token {
	if s.err != nil {
		return 0
	}
	was, err := s.tree.Snapshot(s.ctx)
	s.restarts++
	s.start()
	s.err = err
	for _, r := range s.records {
		h, err := s.tree.TryLock(s.ctx, at(r.path), by(r.owner, r.reason))
		s.held[r.owner] = h
		s.err = errors.Join(s.err, err)
	}
	s.line.step()
	return was.LastToken
}

// deploy takes the path at once. It may be asked again.
func (s *story) deploy(path, owner, reason string) *lock.Grant {
	if s.err != nil {
		return nil
	}
	h, err := s.tree.TryLock(s.ctx, at(path), by(owner, reason))
	if s.err = err; err == nil && s.held[owner] == nil {
		s.records = append(s.records, record{path, owner, reason})
	}
	s.held[owner] = h
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
	owner string
	held  *lock.Grant
	err   error
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

// granted waits for the end of a wait.
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

// end unlocks what an action has, once its record says that it is over.
func (s *story) end(owner string) {
	if s.err == nil {
		s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.owner == owner })
		s.err = s.held[owner].Unlock(s.ctx)
		s.line.step()
	}
}
