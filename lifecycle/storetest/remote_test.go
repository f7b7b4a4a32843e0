package storetest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// remote is a store whose engine is at the other end of a connection, and knows
// records as JSON only. It is sound but for what is bent in it.
type remote struct {
	address  string
	database string
	has      lifecycle.Capabilities

	lost       func(r *remote, ctx context.Context, c *lifecycle.Commit, err error) error // settles a commit that may have been written
	halfLists  bool
	deaf       bool // does not hear of a context that ends
	broken     bool // stays broken once it was
	wasBroken  bool
	filledHere bool // takes any beginning of an answer for one
	olderRead  bool // reads from what it knows if it gets no answer
	known      map[lifecycle.Key]lifecycle.StoredRecord
	clock      bool // ages are by the clock of this process
	stamps     bool // and so is what it says of a commit

	calls  sync.WaitGroup
	mu     sync.Mutex
	closed bool
	idle   []net.Conn
}

func newRemote(address, database string) *remote {
	return &remote{
		address: address, database: database, lost: (*remote).settle,
		has:   lifecycle.Capabilities{Changes: limit, History: true, Messages: true, OwnClock: true},
		known: map[lifecycle.Key]lifecycle.StoredRecord{},
	}
}

func (r *remote) Capabilities() lifecycle.Capabilities { return r.has }

// Close waits for the calls that are under way.
func (r *remote) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
	for _, c := range r.idle {
		_ = c.Close()
	}
	r.idle = nil
	return nil
}

// enter begins a call.
func (r *remote) enter(ctx context.Context) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, lifecycle.Ended(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, lifecycle.ErrClosed
	}
	r.calls.Add(1)
	return r.calls.Done, nil
}

// request is what goes to the engine, in one line.
type request struct {
	Database string
	Verb     string
	Key      lifecycle.Key
	After    uint64
	Limit    int
	Query    lifecycle.Query
	Numbers  []uint64
	Commit   *lifecycle.Commit
}

// answer is a line of what comes back; the last says so.
type answer struct {
	Record  *lifecycle.StoredRecord
	Row     *lifecycle.HistoryRow
	Message *lifecycle.OutboxMessage
	Fail    *failure
	Last    bool
}

type failure struct {
	Kind, Text   string
	Change       int
	Expect       lifecycle.Revision
	From         string
	Precondition lifecycle.Precondition
	Current      *lifecycle.StoredRecord
}

// call sends a request and reads the answer. The error is errNotSent if the
// engine has certainly not got all of it, the context's if that has ended.
func (r *remote) call(ctx context.Context, q request, each func(answer)) error {
	conn, err := r.connection(ctx)
	if err != nil {
		return err
	}
	stop := func() bool { return true }
	if !r.deaf {
		stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	}
	q.Database = r.database
	line, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	keep := false
	defer func() { r.back(conn, stop() && keep) }()
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	decoder := json.NewDecoder(bufio.NewReader(conn))
	for {
		var a answer
		if err := decoder.Decode(&a); err != nil {
			if r.halfLists && q.Verb == "list" {
				return nil
			}
			if r.filledHere && errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		switch {
		case a.Fail != nil:
			keep = true
			return a.Fail.err()
		case a.Last:
			keep = true
			return nil
		}
		each(a)
	}
}

var (
	errNotSent = errors.New("not sent")
	errBroken  = errors.New("still broken")
)

func (r *remote) connection(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	if r.broken && r.wasBroken {
		r.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", errNotSent, errBroken)
	}
	if n := len(r.idle); n > 0 {
		c := r.idle[n-1]
		r.idle = r.idle[:n-1]
		r.mu.Unlock()
		return c, nil
	}
	r.mu.Unlock()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return c, nil
}

func (r *remote) back(c net.Conn, keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keep {
		r.idle = append(r.idle, c)
		return
	}
	r.wasBroken = true
	_ = c.Close()
}

// read repeats a read once on another connection, if nobody has said anything.
func (r *remote) read(ctx context.Context, q request, each func(answer), begin func()) error {
	leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for range 2 {
		begin()
		err = r.call(ctx, q, each)
		if err == nil || known(err) || r.olderRead {
			return err
		}
	}
	return why(ctx, err)
}

// known reports whether an error is the engine's word.
func known(err error) bool {
	return errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrPrecondition) ||
		errors.Is(err, lifecycle.ErrInvalid) || errors.Is(err, errors.ErrUnsupported)
}

// why is the error of a call that came to nothing.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	return err
}

func (r *remote) Get(ctx context.Context, k lifecycle.Key) (got lifecycle.StoredRecord, err error) {
	err = r.read(ctx, request{Verb: "get", Key: k}, func(a answer) { got = *a.Record }, func() {})
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.known[k]; ok && err != nil && r.olderRead {
		return old, nil
	}
	if err == nil && r.olderRead {
		if _, ok := r.known[k]; !ok {
			r.known[k] = got
		}
	}
	return got, err
}

func (r *remote) List(ctx context.Context, q lifecycle.Query) (found []lifecycle.StoredRecord, err error) {
	asked := q
	if r.clock && q.Limit > 0 {
		asked.UnchangedFor, asked.Limit = 0, all
	}
	err = r.read(ctx, request{Verb: "list", Query: asked}, func(a answer) { found = append(found, *a.Record) }, func() { found = nil })
	if r.clock && err == nil {
		found = slices.DeleteFunc(found, func(f lifecycle.StoredRecord) bool { return time.Since(f.ChangedAt) < q.UnchangedFor })
	}
	return found, err
}

func (r *remote) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) (rows []lifecycle.HistoryRow, err error) {
	err = r.read(ctx, request{Verb: "history", Key: k, After: after, Limit: limit}, func(a answer) { rows = append(rows, *a.Row) }, func() { rows = nil })
	return rows, err
}

func (r *remote) Messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	err = r.read(ctx, request{Verb: "messages", Limit: limit}, func(a answer) { list = append(list, *a.Message) }, func() { list = nil })
	return list, err
}

func (r *remote) Discard(ctx context.Context, numbers ...uint64) error {
	return r.read(ctx, request{Verb: "discard", Numbers: numbers}, func(answer) {}, func() {})
}

func (r *remote) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := c.Check(r.has); err != nil {
		return err
	}
	leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	switch err := r.commit(ctx, c); {
	case err == nil || known(err):
		return err
	case errors.Is(err, errNotSent):
		return why(ctx, err)
	default:
		return r.lost(r, ctx, c, err)
	}
}

// settle sends a commit again under its token, which the engine knows.
func (r *remote) settle(ctx context.Context, c *lifecycle.Commit, err error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	for range 3 {
		again := r.commit(ctx, c)
		if again == nil || known(again) {
			return again
		}
		err = errors.Join(err, again)
	}
	return fmt.Errorf("%w: %w", lifecycle.ErrUnknownOutcome, err)
}

// commit sends a commit once.
func (r *remote) commit(ctx context.Context, c *lifecycle.Commit) error {
	i := 0
	return r.call(ctx, request{Verb: "commit", Commit: c}, func(a answer) {
		to := &c.Changes[i].To
		to.Revision, to.ChangedAt, to.Deadline = a.Record.Revision, a.Record.ChangedAt, a.Record.Deadline
		if i++; r.stamps {
			to.ChangedAt = time.Now()
		}
	})
}

func (f *failure) err() error {
	current := lifecycle.StoredRecord{}
	if f.Current != nil {
		current = *f.Current
	}
	switch f.Kind {
	case "conflict":
		return &lifecycle.ConflictError{Change: f.Change, Expect: f.Expect, From: f.From, Current: current}
	case "precondition":
		return &lifecycle.PreconditionError{Precondition: f.Precondition, Current: current}
	}
	i := slices.IndexFunc(told, func(err error) bool { return err.Error() == f.Kind })
	if i < 0 {
		return errors.New(f.Text)
	}
	return fmt.Errorf("%w: %s", told[i], f.Text)
}

// told are the errors that the engine can tell.
var told = []error{lifecycle.ErrInvalid, errors.ErrUnsupported}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	var current lifecycle.StoredRecord
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		f.Kind, f.Change, f.Expect, f.From, current = "conflict", conflict.Change, conflict.Expect, conflict.From, conflict.Current
	} else if unmet, ok := errors.AsType[*lifecycle.PreconditionError](err); ok {
		f.Kind, f.Precondition, current = "precondition", unmet.Precondition, unmet.Current
	}
	for _, sentinel := range told {
		if errors.Is(err, sentinel) {
			f.Kind = sentinel.Error()
		}
	}
	f.Current = &current
	f.Kind = cmp.Or(f.Kind, "other")
	return f
}
