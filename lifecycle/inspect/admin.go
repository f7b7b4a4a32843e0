package inspect

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Action is one request for the handler of [Page.Admin], and its JSON answer. It is a value.
type Action struct {
	Verb   string    `json:"verb"` // the route without its slash
	Actor  fsm.Actor `json:"actor"`
	Reason string    `json:"reason"`

	Machine string `json:"machine,omitempty"`
	ID      string `json:"id,omitempty"`
	To      string `json:"to,omitempty"` // the state that override names

	Queue string `json:"queue,omitempty"`
	Class string `json:"class,omitempty"` // empty: the whole queue
	Key   string `json:"key,omitempty"`   // of a lane; Machine and ID instead, if it has them

	Lock  string     `json:"lock,omitempty"`
	Token lock.Token `json:"token,omitempty"`

	Err error `json:"-"` // of the action; nil: it was performed
}

// errPanicked is the error of an action during which a store or a lock tree panicked.
var errPanicked = errors.New("inspect: the action panicked, and may have been performed")

// verbs perform an action.
var verbs = map[string]func(p *Page, ctx context.Context, a *Action) error{
	"override": (*Page).override,
	"pause":    onQueue(func(q Queue, a *Action) error { return q.PauseClass(a.Class) }),
	"resume":   onQueue(func(q Queue, a *Action) error { return q.ResumeClass(a.Class) }),
	"continue": onQueue(func(q Queue, a *Action) error { return q.resume(a.lane()) }),
	"abandon":  onQueue(func(q Queue, a *Action) error { return q.abandon(a.lane()) }),
	"revoke":   onLock(lock.Locker.Revoke),
	"break":    onLock(lock.Locker.Break),
}

// Admin returns a handler of the verbs for operators. It is separate from the page, so that
// a service can leave it out, or serve it behind other access rules. It answers POST
// only, refuses requests that a browser sends from another site, and reads the parameters
// from the form in the body:
//
//	/override   machine, id, to      lifecycle.Manager.Override: puts an object into a state
//	/pause      queue, class         queue.Queuer.PauseClass; without class: the whole queue
//	/resume     queue, class         queue.Queuer.ResumeClass
//	/continue   queue, machine, id   queue.Queuer.Resume: continues a halted key
//	/abandon    queue, machine, id   queue.Queuer.Abandon: frees a key from its action
//	/revoke     lock, token          lock.Locker.Revoke: signals a holder to stop
//	/break      lock, token          lock.Locker.Break: takes a grant away
//
// All of them need a reason. The parameter key replaces machine and id for the keys of
// other queues. Queues, and lock trees of type [lock.Tree], are those of this process; a token
// of a lock driver may be that of another process. The answer is the [Action] or the problem,
// as JSON.
//
// The function authorize returns the actor that sends a request, such as the account of an
// operator, or an error, if it does not permit the action. The answer is then 403, or the
// status of an error with a method HTTPStatus() int, if that is from 400 to 599. The Actor of
// the action is not set yet.
//
// The function audit records an action that authorize has permitted, after it was performed
// or has failed. The history of an object records overrides only.
//
// The error matches [lifecycle.ErrInvalid] if one of the functions is nil.
func (p *Page) Admin(
	authorize func(*http.Request, Action) (fsm.Actor, error), audit func(context.Context, Action),
) (http.Handler, error) {
	if authorize == nil || audit == nil {
		return nil, fmt.Errorf("%w: inspect: Admin needs authorize and audit", lifecycle.ErrInvalid)
	}
	return &admin{p, authorize, audit, http.NewCrossOriginProtection()}, nil
}

type admin struct {
	page      *Page
	authorize func(*http.Request, Action) (fsm.Actor, error)
	audit     func(context.Context, Action)
	crossSite *http.CrossOriginProtection
}

func (h *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	a, err := h.perform(w, r)
	status, answer := http.StatusOK, any(a)
	if err != nil {
		problem := h.page.problem(r.Context(), err)
		status, answer = problem.Status, *problem
	}
	if err := writeJSON(w, status, answer); err != nil {
		panic(err) // an Action and a problem can always be written
	}
}

// perform performs the action of a request.
func (h *admin) perform(w http.ResponseWriter, r *http.Request) (a Action, err error) {
	a.Verb = strings.TrimPrefix(r.URL.Path, "/")
	do, ok := verbs[a.Verb]
	if !ok {
		return a, notFound("there is no such verb")
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return a, &refusal{http.StatusMethodNotAllowed, "method-not-allowed", "a verb is requested by POST"}
	}
	if err := h.crossSite.Check(r); err != nil {
		return a, &refusal{http.StatusForbidden, "cross-site", "the request is from another site"}
	}
	if err := a.read(w, r); err != nil {
		return a, err
	}
	if a.Actor, err = h.authorize(r, a); err != nil || a.Actor == "" {
		own, ok := errors.AsType[interface {
			error
			HTTPStatus() int
		}](err)
		if ok && 400 <= own.HTTPStatus() && own.HTTPStatus() <= 599 {
			return a, err
		}
		return a, &refusal{http.StatusForbidden, "forbidden", "the request is not permitted"}
	}
	a.Err = errPanicked
	defer func() { h.audit(context.WithoutCancel(r.Context()), a) }()
	a.Err = do(h.page, r.Context(), &a)
	return a, a.Err
}

// read reads the form of a request.
func (a *Action) read(w http.ResponseWriter, r *http.Request) error {
	const formType = "application/x-www-form-urlencoded" // ParseForm skips a body of another type
	given := r.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(given); media != formType {
		return fmt.Errorf("%w: Content-Type %q is not %s", lifecycle.ErrInvalid, given, formType)
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("%w: the form cannot be read: %w", lifecycle.ErrInvalid, err)
	}
	form := r.PostForm
	a.Reason, a.Machine, a.ID, a.To = form.Get("reason"), form.Get("machine"), form.Get("id"), form.Get("to")
	a.Queue, a.Class, a.Key, a.Lock = form.Get("queue"), form.Get("class"), form.Get("key"), form.Get("lock")
	if strings.TrimSpace(a.Reason) == "" {
		return fmt.Errorf("%w: %s needs a reason", lifecycle.ErrInvalid, a.Verb)
	}
	if text := form.Get("token"); text != "" {
		token, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: token %q is not a number", lifecycle.ErrInvalid, text)
		}
		a.Token = lock.Token(token)
	}
	return nil
}

func (p *Page) override(ctx context.Context, a *Action) error {
	m, err := p.machineNamed(a.Machine)
	if err != nil {
		return err
	}
	return m.override(ctx, a.ID, a.To, a.Actor, a.Reason)
}

// onQueue calls f for the queue of an action.
func onQueue(f func(Queue, *Action) error) func(*Page, context.Context, *Action) error {
	return func(p *Page, _ context.Context, a *Action) error {
		for _, q := range p.queues {
			if q.name == a.Queue {
				return f(q.Queue, a)
			}
		}
		return notFound("there is no queue %q", a.Queue)
	}
}

// lane returns the lane of an action, without its actions.
func (a *Action) lane() Lane {
	if a.Machine != "" {
		return laneOf(lifecycle.Key{Machine: a.Machine, ID: a.ID})
	}
	return Lane{Key: a.Key}
}

// onLock calls f for the lock tree of an action.
func onLock(f func(lock.Locker, context.Context, lock.Token, string) error) func(*Page, context.Context, *Action) error {
	return func(p *Page, ctx context.Context, a *Action) error {
		l, ok := p.config.Locks[a.Lock]
		if !ok {
			return notFound("there is no lock tree %q", a.Lock)
		}
		return f(l, ctx, a.Token, fmt.Sprintf("%s: %s", a.Actor, a.Reason))
	}
}
