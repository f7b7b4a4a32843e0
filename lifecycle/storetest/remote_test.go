package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// remoteFault is something that a store with an engine may do wrong.
type remoteFault struct {
	lost    func(r *remote, ctx context.Context, c *commits, err error) error // what to do about a commit without an answer
	partial bool                                                              // a part of an answer counts as the answer
	older   bool                                                              // without an answer, a read returns what it returned before
	deaf    bool                                                              // a request ignores the end of its context
	broken  bool                                                              // no call succeeds after a broken connection
	plain   bool                                                              // an outage is an error of the driver only
	early   bool                                                              // no fault: what has no rows is answered without the engine
	open    bool                                                              // Close does nothing
	closing bool                                                              // a call returns ErrClosed if the store was closed meanwhile
	later   string                                                            // this call reads what a request after the commit has written
	restart func(r *remote)                                                   // what else a restart of the engine does
	locks   chan struct{}                                                     // held by commits that read or write the record of an owner
}

// remote is a store over a simulated connection, which is its own [Network]. Its
// engine is a memory store. A call is one request.
type remote struct {
	remoteFault
	*server
	mu       sync.Mutex
	cutAt    Place
	request  int    // until the cut or the hold; 0: none
	held     func() // not nil: the request is held
	settled  chan struct{}
	struck   bool
	down     bool
	wasDown  bool
	known    map[lifecycle.Key]record
	closed   bool
	requests sync.WaitGroup
}

// server is what the processes have in common.
type server struct {
	writing sync.Mutex // guards what follows
	engine  *lifecycle.MemoryStore
	log     []*commits // what the engine has written
	lives   byte       // tokens that an engine has forgotten differ in it
	index   map[lifecycle.Key]lifecycle.Revision
}

var errBroken = errors.New("connection is broken")

func newRemote(f *remoteFault) *remote {
	first := remote{remoteFault: *f, server: &server{
		engine: &lifecycle.MemoryStore{KeepHistory: -1}, index: map[lifecycle.Key]lifecycle.Revision{},
	}}
	return first.second()
}

// second returns the store of another process.
func (r *remote) second() *remote {
	return &remote{remoteFault: r.remoteFault, server: r.server, known: map[lifecycle.Key]record{}}
}

func (r *remote) Cut(at Place, n int) func() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutAt, r.request, r.held, r.struck = at, n, nil, false
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.struck
	}
}

func (r *remote) Hold(at Place, n int, held func()) func() bool {
	struck := r.Cut(at, n)
	settled := make(chan struct{})
	r.held, r.settled = held, settled
	return func() bool {
		if struck() {
			<-settled
		}
		return struck()
	}
}

func (r *remote) SetDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	r.wasDown = r.wasDown || down
}

// ask sends a request to the engine. The answer is read by the engine's goroutine and
// lost if the caller has left.
func ask[T any](r *remote, ctx context.Context, answer func(engine *lifecycle.MemoryStore) (T, error)) (T, error) {
	var none T
	r.mu.Lock()
	if ctx.Err() != nil || r.closed || r.down || r.broken && r.wasDown {
		defer r.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return none, lifecycle.Ended(ctx)
		case r.closed:
			return none, lifecycle.ErrClosed
		}
		err := errors.New("connection refused")
		if r.plain {
			return none, err
		}
		return none, fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, err)
	}
	strikes := r.request == 1
	r.request = max(r.request-1, 0)
	r.struck = r.struck || strikes
	at, held, settled := r.cutAt, r.held, r.settled

	type result struct {
		answer T
		err    error
	}
	done := make(chan result, 1)
	r.requests.Go(func() {
		var got result
		if strikes && held != nil && at <= InRequest {
			held()
		}
		if strikes && held == nil && at <= InRequest {
			done <- result{err: errBroken}
			return
		}
		r.writing.Lock()
		engine := r.engine
		r.writing.Unlock()
		got.answer, got.err = answer(engine)
		if strikes && held == nil && !(r.partial && at == InAnswer) {
			got = result{err: errBroken}
		} else if strikes && held == nil {
			got = result{}
		}
		if strikes && held != nil {
			if at > InRequest {
				held()
			}
			close(settled)
		}
		done <- got
	})
	r.mu.Unlock() // after Go: Close waits for what began before it
	if r.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case got := <-done:
		return got.answer, got.err
	case <-ctx.Done():
		return none, errBroken
	}
}

func read[T any](r *remote, ctx context.Context, answer func(engine *lifecycle.MemoryStore) (T, error)) (T, error) {
	got, err := ask(r, ctx, answer)
	if errors.Is(err, errBroken) && ctx.Err() == nil {
		got, err = ask(r, ctx, answer)
	}
	if errors.Is(err, errBroken) && ctx.Err() != nil {
		err = lifecycle.Ended(ctx)
	}
	return got, err
}

func (r *remote) Capabilities() lifecycle.Capabilities {
	return lifecycle.Capabilities{Changes: limit, History: true, Messages: true}
}

func (r *remote) Close() error {
	if r.open {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.requests.Wait()
	return nil
}

func (r *remote) Get(ctx context.Context, k lifecycle.Key) (record, error) {
	get := func(engine *lifecycle.MemoryStore) (record, error) { return engine.Get(context.Background(), k) }
	if !r.older {
		return read(r, ctx, get)
	}
	got, err := ask(r, ctx, get)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.known[k]; ok && err != nil {
		return old, nil
	}
	if _, ok := r.known[k]; !ok {
		r.known[k] = got
	}
	return got, err
}

func (r *remote) List(ctx context.Context, q lifecycle.Query) ([]record, error) {
	list, err := read(r, ctx, func(engine *lifecycle.MemoryStore) ([]record, error) { return engine.List(context.Background(), q) })
	return slices.DeleteFunc(list, func(found record) bool { return r.late("List", found.Key, found.Revision) }), err
}

// late reports whether a call finds nothing, because the request after the commit is missing.
func (r *remote) late(call string, k lifecycle.Key, revision lifecycle.Revision) bool {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.later == call && k.ID != "" && r.index[k] != revision
}

func (r *remote) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	list, err := read(r, ctx, func(engine *lifecycle.MemoryStore) ([]lifecycle.ChangedObject, error) {
		return engine.Recent(context.Background(), machine, within, after, limit)
	})
	return slices.DeleteFunc(list, func(found lifecycle.ChangedObject) bool {
		k := lifecycle.Key{Machine: machine, ID: found.ID}
		now, _ := r.Get(ctx, k)
		return r.late("Recent", k, now.Revision)
	}), err
}

func (r *remote) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) (rows, error) {
	if r.early && after == math.MaxUint64 && ctx.Err() == nil {
		return nil, nil
	}
	return read(r, ctx, func(engine *lifecycle.MemoryStore) (rows, error) {
		return engine.History(context.Background(), k, after, limit)
	})
}

func (r *remote) Requested(ctx context.Context, machine, request string) (lifecycle.HistoryRow, error) {
	row, err := read(r, ctx, func(engine *lifecycle.MemoryStore) (lifecycle.HistoryRow, error) {
		return engine.Requested(context.Background(), machine, request)
	})
	if r.late("Requested", row.Key, row.Revision) {
		row = lifecycle.HistoryRow{}
	}
	return row, err
}

func (r *remote) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	return read(r, ctx, func(engine *lifecycle.MemoryStore) ([]lifecycle.OutboxMessage, error) {
		return engine.Messages(context.Background(), limit)
	})
}

func (r *remote) Discard(ctx context.Context, numbers ...uint64) error {
	_, err := read(r, ctx, func(engine *lifecycle.MemoryStore) (any, error) {
		return nil, engine.Discard(context.Background(), numbers...)
	})
	return err
}

func (r *remote) Commit(ctx context.Context, c *commits) error {
	err := r.sendOnce(ctx, c)
	switch {
	case err == nil && r.later != "":
		_, _ = ask(r, ctx, func(*lifecycle.MemoryStore) (any, error) {
			r.writing.Lock()
			defer r.writing.Unlock()
			for i := range c.Changes {
				r.index[c.Changes[i].To.Key] = c.Changes[i].To.Revision
			}
			return nil, nil
		})
		return nil
	case err == nil && r.closing:
		time.Sleep(time.Millisecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return lifecycle.ErrClosed
		}
		return nil
	case !errors.Is(err, errBroken):
		return err
	case r.lost != nil:
		return r.lost(r, ctx, c, err)
	case leaseOnly(c):
		return fmt.Errorf("%w: no answer", lifecycle.ErrUnknownOutcome)
	}
	return r.sendAgain(ctx, c)
}

// sendAgain resolves the outcome of a commit by its token.
func (r *remote) sendAgain(ctx context.Context, c *commits) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	for range 3 {
		if err := r.sendOnce(ctx, c); err == nil || errors.Is(err, lifecycle.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: no answer", lifecycle.ErrUnknownOutcome)
}

func (r *remote) sendOnce(ctx context.Context, c *commits) error {
	sent := clone(c)
	if r.locks != nil && (c.Owner.Name != "" || c.Changes[0].To.Key == owner("process", 1).Key()) {
		select {
		case r.locks <- struct{}{}:
			defer func() { <-r.locks }()
		case <-ctx.Done():
			return lifecycle.Ended(ctx)
		}
	}
	written, err := ask(r, ctx, func(engine *lifecycle.MemoryStore) (*commits, error) {
		r.writing.Lock()
		defer r.writing.Unlock()
		sent.Token[0] += r.lives
		filled := clone(sent)
		err := engine.Commit(context.Background(), filled)
		if err == nil {
			r.log = append(r.log, clone(sent))
		}
		return filled, err
	})
	if written != nil {
		c.Changes = slices.Clone(written.Changes)
	}
	return err
}

// restartEngine ends the engine and starts it again.
func (r *remote) restartEngine() {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.restart != nil {
		r.restart(r)
	}
}

// replay starts an engine that has lost the last commits.
func (r *remote) replay(lost int) {
	r.engine = &lifecycle.MemoryStore{KeepHistory: -1}
	r.log = r.log[:max(0, len(r.log)-lost)]
	for _, c := range r.log {
		_ = r.engine.Commit(context.Background(), clone(c))
	}
}
