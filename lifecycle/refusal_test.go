package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

var errEdit = errors.New("the edit fails")

// refusal is a bad request and what it gets.
type refusal struct {
	name     string
	call     func(ctx context.Context, m *sizedManager) error
	sentinel error
	want     lifecycle.Error // but Err
	text     string
}

// TestRefusals: bad input gets a typed error that names machine, object, state,
// event and actor, and changes nothing.
func TestRefusals(t *testing.T) {
	create := func(id string, e event, actor fsm.Actor, n int) func(context.Context, *sizedManager) error {
		return func(ctx context.Context, m *sizedManager) error {
			_, err := m.Create(ctx, id, e, actor, size{N: n}, nil)
			return err
		}
	}
	add := func(id string, at state, actor fsm.Actor) func(context.Context, *sizedManager) error {
		return func(ctx context.Context, m *sizedManager) error {
			_, err := m.Add(ctx, id, at, actor, size{}, nil)
			return err
		}
	}
	fire := func(id string, e event, actor fsm.Actor, change *lifecycle.Change[size]) func(context.Context, *sizedManager) error {
		return func(ctx context.Context, m *sizedManager) error {
			_, err := m.Fire(ctx, id, e, actor, change)
			return err
		}
	}
	report := func(id string, e event, actor fsm.Actor) func(context.Context, *sizedManager) error {
		return func(ctx context.Context, m *sizedManager) error {
			verdict, err := m.Report(ctx, id, 1, e, actor, nil)
			if verdict != lifecycle.Refused {
				return fmt.Errorf("verdict %v: %w", verdict, err)
			}
			return err
		}
	}
	cases := []refusal{
		{
			"create by an unknown event", create("none", "fly", user, 1), fsm.ErrUnknownEvent,
			lifecycle.Error{Verb: "create", ID: "none", Event: "fly", Actor: user},
			`lifecycle: create vm "none": fly by user: unknown event`,
		},
		{
			"fire an unknown event", fire("a", "fly", user, nil), fsm.ErrUnknownEvent,
			lifecycle.Error{Verb: "fire", ID: "a", Event: "fly", Actor: user},
			`lifecycle: fire vm "a": fly by user: unknown event`,
		},
		{
			"report an unknown event", report("a", "fly", agent), fsm.ErrUnknownEvent,
			lifecycle.Error{Verb: "report", ID: "a", Event: "fly", Actor: agent},
			`lifecycle: report vm "a": fly by agent: unknown event`,
		},
		{
			"create by the wrong actor", create("none", "create", agent, 1), fsm.ErrWrongActor,
			lifecycle.Error{Verb: "create", ID: "none", Event: "create", Actor: agent},
			`lifecycle: create vm "none": create by agent: wrong actor`,
		},
		{
			"fire by the wrong actor", fire("a", "update", agent, nil), fsm.ErrWrongActor,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "update", Actor: agent},
			`lifecycle: fire vm "a": update by agent in Ready: wrong actor`,
		},
		{
			"fire by an undeclared actor", fire("a", "touch", "ghost", nil), fsm.ErrWrongActor,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "touch", Actor: "ghost"},
			`lifecycle: fire vm "a": touch by ghost in Ready: wrong actor`,
		},
		{
			"fire without an actor", fire("a", "touch", "", nil), fsm.ErrWrongActor,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "touch"},
			`lifecycle: fire vm "a": touch in Ready: wrong actor`,
		},
		{
			"fire without a row", fire("a", "retry", user, nil), fsm.ErrNotAllowed,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "retry", Actor: user},
			`lifecycle: fire vm "a": retry by user in Ready: not allowed`,
		},
		{
			"fire in transition", fire("b", "update", user, nil), lifecycle.ErrBusy,
			lifecycle.Error{Verb: "fire", ID: "b", From: "Creating", Event: "update", Actor: user},
			`lifecycle: fire vm "b": update by user in Creating: cannot execute action at this time`,
		},
		{
			"fire in transition, as the table sees it", fire("b", "update", user, nil), fsm.ErrNotAllowed,
			lifecycle.Error{Verb: "fire", ID: "b", From: "Creating", Event: "update", Actor: user},
			`lifecycle: fire vm "b": update by user in Creating: cannot execute action at this time`,
		},
		{
			"fire in transition what is only by force", fire("u", "repair", user, nil), lifecycle.ErrBusy,
			lifecycle.Error{Verb: "fire", ID: "u", From: "Updating", Event: "repair", Actor: user},
			`lifecycle: fire vm "u": repair by user in Updating: cannot execute action at this time`,
		},
		{
			"fire what is only by force", fire("f", "repair", user, nil), fsm.ErrForcedOnly,
			lifecycle.Error{Verb: "fire", ID: "f", From: "Failed", Event: "repair", Actor: user},
			`lifecycle: fire vm "f": repair by user in Failed: only by force`,
		},
		{
			"fire at nothing", fire("none", "update", user, nil), lifecycle.ErrNotFound,
			lifecycle.Error{Verb: "fire", ID: "none", Event: "update", Actor: user},
			`lifecycle: fire vm "none": update by user: not found`,
		},
		{
			"create past the guard", create("none", "create", user, 101), fsm.ErrGuard,
			lifecycle.Error{Verb: "create", ID: "none", Event: "create", Actor: user},
			`lifecycle: create vm "none": create by user: refused by a guard: fits: 101 is more than 100`,
		},
		{
			"fire past the guard", fire("large", "update", user, resize(102)), fsm.ErrGuard,
			lifecycle.Error{Verb: "fire", ID: "large", From: "Ready", Event: "update", Actor: user},
			`lifecycle: fire vm "large": update by user in Ready: refused by a guard: fits: 102 is more than 100`,
		},
		{
			"create what exists", create("a", "create", user, 1), lifecycle.ErrExists,
			lifecycle.Error{Verb: "create", ID: "a", From: "Ready", Event: "create", Actor: user},
			`lifecycle: create vm "a": create by user in Ready: exists already, Ready at revision "2"`,
		},
		{
			"create without a row out of absence", create("none", "update", user, 1), fsm.ErrNotAllowed,
			lifecycle.Error{Verb: "create", ID: "none", Event: "update", Actor: user},
			`lifecycle: create vm "none": update by user: not allowed`,
		},
		{
			"add where objects are created", add("none", "None", user), lifecycle.ErrInvalid,
			lifecycle.Error{Verb: "add", ID: "none", Actor: user},
			`lifecycle: add vm "none" by user: invalid request: state "None" is absent: only an object at rest can be added`,
		},
		{
			"add by an undeclared actor", add("none", "Ready", "ghost"), fsm.ErrWrongActor,
			lifecycle.Error{Verb: "add", ID: "none", Actor: "ghost"},
			`lifecycle: add vm "none" by ghost: wrong actor`,
		},
		{
			"edit that fails", fire("a", "update", user, &lifecycle.Change[size]{Edit: func(p *size) error {
				p.N = 99
				return errEdit
			}}), errEdit,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "update", Actor: user},
			`lifecycle: fire vm "a": update by user in Ready: the edit fails`,
		},
		{
			"precondition", fire("a", "update", user, &lifecycle.Change[size]{
				Require:  []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "vm", ID: "b"}, States: []string{"Ready", ""}}},
				Messages: []lifecycle.Message{{Topic: "changed"}},
			}), lifecycle.ErrPrecondition,
			lifecycle.Error{Verb: "fire", ID: "a", From: "Ready", Event: "update", Actor: user},
			`lifecycle: fire vm "a": update by user in Ready: precondition failed: vm "b" is Creating, not Ready or absent`,
		},
	}
	for _, c := range append(cases, badIDs(create, fire, report)...) {
		t.Run(c.name, func(t *testing.T) {
			m, store := vms(t)
			ready(t, m, "a")
			_, err := m.Create(t.Context(), "b", "create", user, size{}, nil)
			require.NoError(t, err)
			_, err = m.Create(t.Context(), "f", "create", user, size{}, nil)
			require.NoError(t, err)
			_, err = m.Fire(t.Context(), "f", "fail", agent, nil)
			require.NoError(t, err)
			updating(t, m, "u")
			_, err = m.Create(t.Context(), "large", "import", user, size{N: 101}, nil)
			require.NoError(t, err)
			before := all(t, store.MemoryStore, "vm", "a", "b", "f", "u", "large", "none")

			err = c.call(t.Context(), m)

			require.ErrorIs(t, err, c.sentinel)
			require.EqualError(t, err, c.text)
			e, ok := errors.AsType[*lifecycle.Error](err)
			require.True(t, ok, "%T", err)
			got := *e
			c.want.Machine, got.Err = "vm", nil
			require.Equal(t, c.want, got)
			require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "b", "f", "u", "large", "none"))
		})
	}
}

// badIDs are the ids that no verb takes.
func badIDs(
	create func(string, event, fsm.Actor, int) func(context.Context, *sizedManager) error,
	fire func(string, event, fsm.Actor, *lifecycle.Change[size]) func(context.Context, *sizedManager) error,
	report func(string, event, fsm.Actor) func(context.Context, *sizedManager) error,
) (cases []refusal) {
	long := strings.Repeat("x", lifecycle.MaxID+1)
	for _, id := range []struct{ name, id, quoted, text string }{
		{"an empty id", "", "", `empty id`},
		{"a long id", long, ` "` + long + `"`, `id of 256 bytes, more than 255`},
		{"NUL in the id", "a\x00b", ` "a\x00b"`, `NUL in id "a\x00b"`},
		{"bytes for an id", "a\xffb", ` "a\xffb"`, `id "a\xffb" is not UTF-8`},
	} {
		for _, verb := range []struct {
			name, text string
			call       func(context.Context, *sizedManager) error
			want       lifecycle.Error
		}{
			{"create", ": create by user", create(id.id, "create", user, 1), lifecycle.Error{Event: "create", Actor: user}},
			{"fire", ": update by user", fire(id.id, "update", user, nil), lifecycle.Error{Event: "update", Actor: user}},
			{"report", ": done by agent", report(id.id, "done", agent), lifecycle.Error{Event: "done", Actor: agent}},
			{"get", "", func(ctx context.Context, m *sizedManager) error {
				_, err := m.Get(ctx, id.id)
				return err
			}, lifecycle.Error{}},
			{"history", "", func(ctx context.Context, m *sizedManager) error {
				_, err := m.History(ctx, id.id, 0, 0)
				return err
			}, lifecycle.Error{}},
		} {
			verb.want.Verb, verb.want.ID = verb.name, id.id
			cases = append(cases, refusal{
				verb.name + " with " + id.name, verb.call, lifecycle.ErrInvalid, verb.want,
				"lifecycle: " + verb.name + " vm" + id.quoted + verb.text + ": invalid request: " + id.text,
			})
		}
	}
	return cases
}

// TestIgnoredAbsence: a table may ignore an event where nothing is; that makes
// no object, and the caller gets ErrNotFound.
func TestIgnoredAbsence(t *testing.T) {
	spec := noteTable()
	spec.Rows = append(spec.Rows, fsm.Ignore[state, event]("Gone", "throw"))
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(fsm.Must[size](spec), store, nil)
	_, err := m.Create(t.Context(), "a", "throw", user, size{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.Zero(t, storedAt(t, store, lifecycle.Key{Machine: "note", ID: "a"}).Sequence)
}

// TestLongestID: the longest id that is allowed is not a problem.
func TestLongestID(t *testing.T) {
	m, _ := vms(t)
	id := strings.Repeat("é", lifecycle.MaxID/2) + "x"
	require.Len(t, id, 255)
	require.Equal(t, id, ready(t, m, id).ID)
}

type verb struct {
	name string
	want lifecycle.Error
	call func(ctx context.Context, m *sizedManager) error
}

// verbs are all that a manager does, for failures that strike each of them. "a"
// exists, "none" does not.
var verbs = []verb{
	{"create", lifecycle.Error{ID: "none", Event: "create", Actor: user}, func(ctx context.Context, m *sizedManager) error {
		_, err := m.Create(ctx, "none", "create", user, size{}, nil)
		return err
	}},
	{"add", lifecycle.Error{ID: "none", Actor: user}, func(ctx context.Context, m *sizedManager) error {
		_, err := m.Add(ctx, "none", "Ready", user, size{}, nil)
		return err
	}},
	{"fire", lifecycle.Error{ID: "a", Event: "update", Actor: user}, func(ctx context.Context, m *sizedManager) error {
		_, err := m.Fire(ctx, "a", "update", user, nil)
		return err
	}},
	{"report", lifecycle.Error{ID: "a", Event: "touch", Actor: agent}, func(ctx context.Context, m *sizedManager) error {
		verdict, err := m.Report(ctx, "a", 1, "touch", agent, nil)
		if verdict != lifecycle.Refused {
			return fmt.Errorf("verdict %v", verdict)
		}
		return err
	}},
	{"get", lifecycle.Error{ID: "a"}, func(ctx context.Context, m *sizedManager) error {
		_, err := m.Get(ctx, "a")
		return err
	}},
	{"list", lifecycle.Error{}, func(ctx context.Context, m *sizedManager) error {
		page, err := m.List(ctx, lifecycle.Select[state]{})
		for _, rec := range page {
			err = errors.Join(err, rec.Err) // at most one
		}
		return err
	}},
	{"list", lifecycle.Error{}, func(ctx context.Context, m *sizedManager) (last error) {
		for _, err := range m.All(ctx, lifecycle.Select[state]{}) {
			last = err
		}
		return last
	}},
	{"history", lifecycle.Error{ID: "a"}, func(ctx context.Context, m *sizedManager) error {
		_, err := m.History(ctx, "a", 0, 0)
		return err
	}},
}

// TestEndedContext: every verb returns the cause, and does nothing.
func TestEndedContext(t *testing.T) {
	errCause := errors.New("the service is shutting down")
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			m, store := vms(t)
			ready(t, m, "a")
			before := all(t, store.MemoryStore, "vm", "a", "none")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errCause)
			err := v.call(ctx, m)
			failsWith(t, err, errCause, v.name, v.want)
			require.Equal(t, lifecycle.StatusClientClosedRequest, lifecycle.HTTPStatus(err), "for every cause")
			require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "none"))

			ctx, cancel = context.WithCancelCause(t.Context())
			cancel(nil)
			err = v.call(ctx, m)
			failsWith(t, err, context.Canceled, v.name, v.want)
			require.Equal(t, lifecycle.StatusClientClosedRequest, lifecycle.HTTPStatus(err))
		})
	}
}

// TestContextEndsInGuard: a guard that could not look, because the caller has
// gone meanwhile, decides nothing, whether there is a history to ask or not.
func TestContextEndsInGuard(t *testing.T) {
	errCause := errors.New("the client has gone")
	machine := asking(func(ctx context.Context, _, _ *size) error {
		if ctx.Err() != nil {
			return fmt.Errorf("cannot look: %w", context.Cause(ctx))
		}
		return nil
	})
	for _, history := range []bool{true, false} {
		t.Run(fmt.Sprintf("history %t", history), func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			m := lifecycle.Must(machine, store, nil)
			if !history {
				m = lifecycle.Must(machine, struct{ lifecycle.Store }{store}, nil)
			}
			add(t, m, "a", user, size{})
			fire(t, m, "a", "open", user, nil)
			before := all(t, store.MemoryStore, "asking", "a")
			leave := func() context.Context {
				ctx, cancel := context.WithCancelCause(t.Context())
				store.afterGet = func(int) { cancel(errCause) }
				return ctx
			}
			_, err := m.Fire(leave(), "a", "edit", user, nil)
			require.ErrorIs(t, err, errCause)
			verdict, err := m.Report(leave(), "a", 1, "edit", user, nil)
			require.ErrorIs(t, err, errCause, "the verdict is %v, and nothing could be decided", verdict)
			require.Equal(t, before, all(t, store.MemoryStore, "asking", "a"))
		})
	}
}

// TestClosedStore: every verb returns ErrClosed.
func TestClosedStore(t *testing.T) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			m, store := vms(t)
			ready(t, m, "a")
			require.NoError(t, store.Close())
			err := v.call(t.Context(), m)
			failsWith(t, err, lifecycle.ErrClosed, v.name, v.want)
			require.Equal(t, 503, lifecycle.HTTPStatus(err))
		})
	}
}

func failsWith(t *testing.T, err, sentinel error, verb string, want lifecycle.Error) {
	t.Helper()
	require.ErrorIs(t, err, sentinel)
	e, ok := errors.AsType[*lifecycle.Error](err)
	require.True(t, ok, "%T", err)
	want.Verb, want.Machine, want.Err = verb, "vm", e.Err
	require.Equal(t, &want, e)
}

// TestForeignRecord: what another table has written is refused by every verb
// that reads it, and is not changed.
func TestForeignRecord(t *testing.T) {
	key := lifecycle.Key{Machine: "vm", ID: "a"}
	for _, foreign := range []struct{ name, state, origin, text string }{
		{"state", "Melting", "Melting", `"Melting": not declared`},
		{"origin", "Creating", "Melting", `"Creating": origin "Melting" is not declared`},
	} {
		for _, v := range verbs {
			if v.name == "history" || v.name == "add" || v.name == "create" {
				continue // rows are names, and the others look at "none"
			}
			t.Run(v.name+" "+foreign.name, func(t *testing.T) {
				m, store := vms(t)
				plant(t, store, lifecycle.StoredRecord{Key: key, State: foreign.state, Origin: foreign.origin})
				before := all(t, store.MemoryStore, "vm", "a")
				err := v.call(t.Context(), m)
				require.ErrorIs(t, err, lifecycle.ErrForeign)
				require.ErrorContains(t, err, strings.TrimPrefix(foreign.text, `"`+foreign.state+`": `))
				e, ok := errors.AsType[*lifecycle.Error](err)
				require.True(t, ok)
				require.Equal(t, lifecycle.Error{Verb: v.name, Machine: "vm", ID: "a"},
					lifecycle.Error{Verb: e.Verb, Machine: e.Machine, ID: e.ID})
				require.Equal(t, 500, lifecycle.HTTPStatus(err))
				require.Equal(t, before, all(t, store.MemoryStore, "vm", "a"))
			})
		}
	}
	t.Run("winner", func(t *testing.T) {
		m, store := vms(t)
		plant(t, store, lifecycle.StoredRecord{Key: key, State: "Melting", Origin: "Melting"})
		before := storedAt(t, store, key)
		_, ok := lifecycle.Current(m, &lifecycle.ConflictError{Current: before})
		require.False(t, ok)
	})
}

// foreignPayload makes an object whose payload is none of this manager.
func foreignPayload(t *testing.T, store lifecycle.Store, id, state string) {
	plant(t, store, lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "vm", ID: id}, State: state, Origin: state, Payload: []byte(`"text"`),
	})
}

// TestForeignPayload: a payload that is none is an error of every verb that looks
// it, never a zero value, and is not changed.
func TestForeignPayload(t *testing.T) {
	m, store := vms(t)
	foreignPayload(t, store, "a", "Ready")
	before := all(t, store.MemoryStore, "vm", "a")
	for _, v := range append(slices.Clone(verbs), []verb{
		{"fire", lifecycle.Error{}, func(ctx context.Context, m *sizedManager) error {
			_, err := m.Fire(ctx, "a", "touch", user, resize(1)) // an edit of a zero payload
			return err
		}},
		{"override", lifecycle.Error{}, func(ctx context.Context, m *sizedManager) error {
			_, err := m.Override(ctx, "a", "Ready", user, "to see", resize(1))
			return err
		}},
		{"override away with an edit", lifecycle.Error{}, func(ctx context.Context, m *sizedManager) error {
			_, err := m.Override(ctx, "a", "None", user, "to see", resize(1))
			return err
		}},
	}...) {
		if v.name == "history" || v.name == "add" || v.name == "create" {
			continue
		}
		err := v.call(t.Context(), m)
		require.ErrorIs(t, err, lifecycle.ErrForeign, v.name)
		require.ErrorContains(t, err, "foreign record: payload is not a lifecycle_test.size: ")
		require.Equal(t, 500, lifecycle.HTTPStatus(err))
	}
	explain(t, m, "a")
	require.Equal(t, before, all(t, store.MemoryStore, "vm", "a"))

	foreignPayload(t, store, "b", "Ready")
	require.Zero(t, override(t, m, "b", "None", user, "it cannot be read", nil).Payload)
	absent(t, m, "b")
}

type (
	ratios struct{ Of []float64 }
	signal struct{ C chan int }
)

// TestUnencodablePayload: what cannot be encoded is an invalid request.
func TestUnencodablePayload(t *testing.T) {
	t.Run("NaN", func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := lifecycle.Must(fsm.Must[ratios](noteTable()), store, nil)
		_, err := m.Add(t.Context(), "a", initial(m), user, ratios{Of: []float64{math.NaN()}}, nil)
		require.EqualError(t, err, `lifecycle: add note "a" by user: invalid request: payload: json: unsupported value: NaN`)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.Equal(t, 400, lifecycle.HTTPStatus(err))
		absent(t, m, "a")

		add(t, m, "a", user, ratios{Of: []float64{1}})
		before := all(t, store, "note", "a")
		_, err = m.Fire(t.Context(), "a", "edit", user, &lifecycle.Change[ratios]{Edit: func(p *ratios) error {
			p.Of = append(p.Of, math.NaN())
			return nil
		}})
		require.EqualError(t, err, `lifecycle: fire note "a": edit by user in Draft: invalid request: payload: json: unsupported value: NaN`)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.Equal(t, before, all(t, store, "note", "a"))
	})
	t.Run("channel", func(t *testing.T) {
		m := lifecycle.Must(fsm.Must[signal](noteTable()), lifecycle.NewMemoryStore(), nil)
		_, err := m.Create(t.Context(), "a", "write", user, signal{}, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.EqualError(t, err, `lifecycle: create note "a": write by user: invalid request: payload: json: unsupported type: chan int`)
	})
}

// TestNewRefuses: New returns what is wrong with its arguments, and Must panics
// with it.
func TestNewRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	refused := func(want string, m *fsm.Machine[state, event, size], store lifecycle.Store, config *lifecycle.Config[event]) {
		t.Helper()
		mgr, err := lifecycle.New(m, store, config)
		require.Nil(t, mgr)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.EqualError(t, err, "lifecycle: invalid request: New"+want)
		require.PanicsWithError(t, err.Error(), func() { lifecycle.Must(m, store, config) })
	}
	refused(" needs a machine and a store", sizedVM, nil, nil)
	refused(" needs a machine and a store", nil, store, nil)
	refused(`: Config.Undo: machine vm has no event "nonsense"`, sizedVM, store, &lifecycle.Config[event]{Undo: []event{"nonsense"}})
	refused(`: Config.WorkerActor: machine vm has no actor "nonsense"`, sizedVM, store, &lifecycle.Config[event]{WorkerActor: "nonsense"})
	refused(": Config.Owner was not made by Join", sizedVM, store, &lifecycle.Config[event]{Owner: new(lifecycle.Owner)})
	refused(": a store of type lifecycle_test.oddStore cannot be compared with another one", sizedVM, oddStore{store, nil}, nil)
}

// partialStore cannot keep some fields.
type partialStore struct {
	lifecycle.Store
	lacks []string
}

func (s *partialStore) Lacks(machine string) []string {
	if strings.HasPrefix(machine, "interlock.") {
		return nil
	}
	return s.lacks
}

func (s *partialStore) CheckState(_, state string, absent bool) error {
	if slices.Contains(s.lacks, state) {
		return fmt.Errorf("no code for %s, absent: %v", state, absent)
	}
	return nil
}

// TestNewRefusesAPartialStore: New names the field that the store cannot keep, and what
// needs it. Without that need it accepts the store.
func TestNewRefusesAPartialStore(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	owner := join(t, store, "p", 0)
	for field, why := range map[string]string{
		"Origin": "the machine has transitional states", "Operation": "the machine has transitional states",
		"Deadline": "the machine has rows with a timeout", "Owner": "Config.Owner is set", "Epoch": "Config.Owner is set",
		"WorkOptions": "Config.WorkerActor is set", "Work": "Config.Handlers is set", "Args": "Config.Handlers is set",
		"Saved": "Config.Undo is set", "Payload": "objects have a payload", "Version": "Config.Version is set",
	} {
		t.Run(field, func(t *testing.T) {
			config := &lifecycle.Config[event]{
				Version: "2", Owner: owner, WorkerActor: user, Undo: slices.Collect(sizedVM.Events())[:1],
				Handlers: map[string]lifecycle.Handler{"work": func(context.Context, []byte) error { return nil }},
			}
			_, err := lifecycle.New(sizedVM, &partialStore{store, []string{field}}, config)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.EqualError(t, err, "lifecycle: invalid request: New: the store cannot keep the field "+field+" of machine vm: "+why)
		})
	}
	_, err := lifecycle.New(sizedVM, &partialStore{store, []string{"Deadline", "Origin", "Owner"}}, &lifecycle.Config[event]{Owner: owner})
	require.EqualError(t, err, "lifecycle: invalid request: New: the store cannot keep "+
		"the field Origin of machine vm: the machine has transitional states; "+
		"the field Deadline of machine vm: the machine has rows with a timeout; "+
		"the field Owner of machine vm: Config.Owner is set", "every field at once")
	_, err = lifecycle.New(sizedVM, &partialStore{store, []string{"Owner", "Epoch", "Work", "Args", "WorkOptions", "Saved", "Admission", "Version"}}, nil)
	require.NoError(t, err)
	_, err = lifecycle.New(note, &partialStore{store, []string{"Origin", "Operation"}}, nil)
	require.NoError(t, err, "no state is transitional")
	_, err = lifecycle.New(fsm.Must[struct{}](noteTable()), &partialStore{store, []string{"Payload"}}, nil)
	require.NoError(t, err)
	older := &lifecycle.Config[event]{Older: []lifecycle.Version{{Name: "0", States: map[string]string{"Idle": "Ready", "Gone": "None"}}}}
	_, err = lifecycle.New(sizedVM, &partialStore{store, []string{"Version"}}, older)
	require.ErrorContains(t, err, "the store cannot keep the field Version of machine vm: Config.Older is set")
	for state, absent := range map[string]bool{"Ready": false, "None": true, "Idle": false, "Gone": true} {
		t.Run(state, func(t *testing.T) {
			_, err = lifecycle.New(sizedVM, &partialStore{store, []string{state}}, older)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.EqualError(t, err, fmt.Sprintf("lifecycle: invalid request: New: the store cannot keep the state %s of machine vm: no code for %[1]s, absent: %v", state, absent))
		})
	}
}

// A precondition on an undeclared state holds for no object, and for no missing
// object either.
func TestRequireUndeclaredState(t *testing.T) {
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	notes, machines := lifecycle.Must(note, store, nil), lifecycle.Must(sizedVM, store, nil)
	for _, s := range []state{"", "Asleep"} {
		create(t, notes, "n", "write", user, size{})
		_, err := notes.Fire(ctx, "n", "throw", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{machines.Require("a", s)}})
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		fire(t, notes, "n", "throw", user, &lifecycle.Change[size]{Require: []lifecycle.Precondition{machines.Require("a", "None")}})
	}
}
