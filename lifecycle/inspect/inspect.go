package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Config has what the page shows. Names are arbitrary texts.
type Config struct {
	// Title is the name of the service. Default: "Interlock".
	Title string
	// Machines are shown in this order. No two machines have the same name. Default: none.
	Machines []Machine
	// Queues are shown by name, besides the queues of the managers. A queue of managers is
	// a *[queue.Queuer] of [lifecycle.Key]; it has the names of its machines as its name,
	// unless Queues has it too. Default: none.
	Queues map[string]Queue
	// Locks are shown by name. Default: none.
	Locks map[string]lock.Locker
	// MaxObjects is how many objects of each machine one answer counts: it reads all of
	// them, without payloads, in pages of [lifecycle.MaxPage]. 0: 100,000.
	MaxObjects int
	// Failed receives the errors with a status of 500 and above of answers, of their parts,
	// and of streams, for the log: the answers do not have the texts of stores. It receives
	// no error for a foreign record that a page shows, see [lifecycle.ErrForeign]. It is
	// called concurrently. Default: nothing.
	Failed func(context.Context, error)
}

const maxStreams = 100 // that are open at once

// Page is the operator's page: an [http.Handler] that is read only. [New] makes one; the
// zero Page is not usable. It is safe for concurrent use. Every answer reads the stores;
// only the counts of a machine and of a lock tree are used again, and the error of a count:
// for ten times as long as the count took, at most 10 seconds. Its goroutines end with
// their requests.
type Page struct {
	config Config
	counts map[string]*shared[*census] // by machine
	queues []namedQueue
	locks  []string                          // names
	held   map[string]*shared[lock.Snapshot] // by lock, without holders

	streams *semaphore.Weighted // one for each open stream
	closed  context.Context
	close   context.CancelFunc
}

// New returns the page. The error matches [lifecycle.ErrInvalid]: there are two machines or
// two queues of one name, a zero Machine or Queue, a nil lock, or a negative number of objects.
func New(config *Config) (*Page, error) {
	if config == nil {
		config = &Config{}
	}
	p := &Page{
		config: *config, counts: map[string]*shared[*census]{},
		held: map[string]*shared[lock.Snapshot]{}, streams: semaphore.NewWeighted(maxStreams),
	}
	c := &p.config
	c.Machines, c.Locks = slices.Clone(c.Machines), maps.Clone(c.Locks)
	p.locks = slices.Sorted(maps.Keys(c.Locks))
	if c.MaxObjects < 0 {
		return nil, refuse("MaxObjects %d is below 0", c.MaxObjects)
	}
	c.Title, c.MaxObjects = cmp.Or(c.Title, "Interlock"), cmp.Or(c.MaxObjects, 100_000)
	for _, m := range c.Machines {
		if m.manager == nil {
			return nil, refuse("a Machine that Of did not make")
		}
		name := m.table().Name
		if p.counts[name] != nil {
			return nil, refuse("two machines with the name %q", name)
		}
		p.counts[name] = newShared[*census]()
	}
	for _, name := range p.locks {
		if c.Locks[name] == nil {
			return nil, refuse("lock %q is nil", name)
		}
		p.held[name] = newShared[lock.Snapshot]()
	}
	var err error
	if p.queues, err = queuesOf(c); err != nil {
		return nil, err
	}
	p.closed, p.close = context.WithCancel(context.Background())
	return p, nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: inspect.New: %s", lifecycle.ErrInvalid, fmt.Sprintf(format, args...))
}

// Close ends all streams of the route "/events", and refuses new ones with the status 503.
// All other routes stay usable. [http.Server.Shutdown] waits for streams, so register Close
// with [http.Server.RegisterOnShutdown]. Close may be called several times.
func (p *Page) Close() { p.close() }

// machine returns the machine that a request names.
func (p *Page) machine(r *http.Request) (Machine, error) {
	return p.machineNamed(r.URL.Query().Get("machine"))
}

func (p *Page) machineNamed(name string) (Machine, error) {
	for _, m := range p.config.Machines {
		if m.table().Name == name {
			return m, nil
		}
	}
	return Machine{}, notFound("there is no machine %q", name)
}

// refusal is an error of this package, in the form that [lifecycle.Problem] reads.
type refusal struct {
	status     int
	code, text string
}

func (r *refusal) Error() string       { return "inspect: " + r.text }
func (r *refusal) HTTPStatus() int     { return r.status }
func (r *refusal) ProblemCode() string { return r.code }

func notFound(format string, args ...any) error {
	return &refusal{http.StatusNotFound, "not-found", fmt.Sprintf(format, args...)}
}

// problem returns an error for an answer, and passes it to [Config].Failed.
func (p *Page) problem(ctx context.Context, err error) *lifecycle.ProblemDetails {
	problem := new(lifecycle.Problem(err))
	if p.config.Failed != nil && problem.Status >= http.StatusInternalServerError {
		p.config.Failed(ctx, err)
	}
	return problem
}
