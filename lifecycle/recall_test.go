package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// errHeavy, errOdd and the panics below depend on the payload: a record that is
// over gives another answer than the present one.
var (
	errHeavy = errors.New("too heavy")
	errOdd   = errors.New("odd")
)

// trolley has rows of most forms, no deadline, and a guard that may panic.
var trolley = fsm.Must[size](fsm.Spec[state, event]{
	Name: "trolley", Initial: "None", Actors: []fsm.Actor{user, agent},
	States: []fsm.State[state]{
		{Name: "None", Kind: fsm.Absent},
		{Name: "Idle"},
		{Name: "Busy", Kind: fsm.Transitional, Manual: "somebody pushes"},
		{Name: "Leaving", Kind: fsm.Transitional, Manual: "somebody pushes"},
		{Name: "Failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("None", "create", "Idle").By(user),
		fsm.Move[state, event]("Idle", "start", "Busy").By(user).If(fsm.When("light", func(_ context.Context, p *size) error {
			switch p.N % 7 {
			case 3:
				return errHeavy
			case 5:
				panic("the guard looks at 5")
			}
			return nil
		})),
		fsm.Move[state, event]("Idle", "note", "Idle").By(user, agent),
		fsm.Ignore[state, event]("Idle", "done").By(user),
		fsm.Move[state, event]("Busy", "done", "Idle").By(agent),
		fsm.Move[state, event]("Busy", "progress", "Busy").By(agent),
		fsm.Move[state, event]("Busy", "fail", "Failed").By(agent),
		fsm.Move[state, event]("Failed", "retry", "Busy").By(user),
		fsm.Move[state, event]("Failed", "repair", "Idle").By(user).OnlyForced(),
		fsm.Move[state, event]("Idle", "delete", "Leaving").AlsoFrom("Failed").By(user),
		fsm.Move[state, event]("Leaving", "done", "None").By(agent),
		fsm.Move[state, event]("Idle", "throw", "None").By(user),
	),
})

// pushed is one line of a script.
type pushed struct {
	What      string
	Object    int
	Event     event
	Actor     fsm.Actor
	To        state
	Edit      int // 0 none
	Expect    int // 0 none, 1 the present revision, 2 an old one
	Operation int // 0 none, 1 the present one, 2 the one before
	Require   int // 0 none, 1 the other object rests, 2 it does not exist
	Force     bool
	Lose      int // 1: the answer of what is written is lost; 2: it is written late
	Fails     bool

	Others int // what somebody else does meanwhile, as far as the call can have noticed
	Late   bool
	Recall int // which record is recalled
}

func drawPushed(t *rapid.T) pushed {
	return pushed{
		What:      rapid.SampledFrom([]string{"fire", "fire", "fire", "fire", "report", "report", "override", "create", "create", "do", "do", "steps", "together", "get"}).Draw(t, "what"),
		Object:    rapid.IntRange(0, 1).Draw(t, "object"),
		Event:     rapid.SampledFrom([]event{"note", "note", "start", "start", "done", "done", "progress", "fail", "retry", "repair", "delete", "throw", "create", "paint"}).Draw(t, "event"),
		Actor:     rapid.SampledFrom([]fsm.Actor{user, user, agent}).Draw(t, "actor"),
		To:        rapid.SampledFrom([]state{"None", "Idle", "Busy", "Failed"}).Draw(t, "to"),
		Edit:      rapid.IntRange(0, 4).Draw(t, "edit"),
		Expect:    rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "expect"),
		Operation: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "operation"),
		Require:   rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "require"),
		Force:     rapid.Bool().Draw(t, "force"),
		Lose:      rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "lose"),
		Fails:     rapid.Bool().Draw(t, "fails"),
		Others:    rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 4}).Draw(t, "others"),
		Late:      rapid.Bool().Draw(t, "late"),
		Recall:    rapid.IntRange(-4, 30).Draw(t, "recall"),
	}
}

// reader is a memory store with somebody in the way, and without a memory.
type reader struct {
	*lifecycle.MemoryStore
	others  func() // what somebody else does before the first answer
	lose    int
	unknown lifecycle.Token
	delayed *lifecycle.Commit
	pool    map[lifecycle.Key][]lifecycle.StoredRecord // everything that was ever committed
	wrong   string
	gets    int
}

func (s *reader) interfere() {
	if others := s.others; others != nil {
		s.others = nil
		others()
	}
}

func (s *reader) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.interfere()
	s.gets++
	return s.MemoryStore.Get(ctx, key)
}

func (s *reader) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.interfere()
	var none lifecycle.Token
	if s.unknown != none {
		if c.Token != s.unknown {
			s.wrong = "after an unknown outcome another token was sent"
		}
		return lifecycle.ErrUnknownOutcome
	}
	for _, p := range c.Require { // before anything is compared, as a store may
		if now, err := s.MemoryStore.Get(ctx, p.Key); err == nil && !slices.Contains(p.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: p, Current: now}
		}
	}
	twin := *c
	twin.Changes = slices.Clone(c.Changes)
	switch {
	case s.lose == 1 && s.write(ctx, &twin) == nil:
		s.unknown = c.Token
		return lifecycle.ErrUnknownOutcome
	case s.lose == 2 && s.holds(ctx, c):
		s.unknown, s.delayed = c.Token, &twin
		return lifecycle.ErrUnknownOutcome
	}
	return s.write(ctx, c)
}

func (s *reader) write(ctx context.Context, c *lifecycle.Commit) error {
	err := s.MemoryStore.Commit(ctx, c)
	for _, ch := range c.Changes {
		if err == nil && !ch.Remove {
			s.pool[ch.To.Key] = append(s.pool[ch.To.Key], ch.To)
		}
	}
	return err
}

// holds reports whether a commit would be written now.
func (s *reader) holds(ctx context.Context, c *lifecycle.Commit) bool {
	for _, ch := range c.Changes {
		if now, err := s.MemoryStore.Get(ctx, ch.To.Key); err != nil || now.Revision != ch.Expect || now.State != ch.From {
			return false
		}
	}
	for _, p := range c.Require {
		if now, err := s.MemoryStore.Get(ctx, p.Key); err != nil || !slices.Contains(p.States, now.State) {
			return false
		}
	}
	return true
}

// recaller is a reader that recalls what it likes.
type recaller struct {
	*reader
	which    int
	late     bool // the others come only when something is asked of the store
	recalled int
	saved    int
}

func (s *recaller) Recall(key lifecycle.Key) (lifecycle.StoredRecord, bool) {
	if !s.late {
		defer s.interfere()
	}
	s.recalled++
	pool := s.pool[key]
	if len(pool) == 0 {
		return lifecycle.StoredRecord{}, false
	}
	r := pool[len(pool)-1]
	switch s.which {
	case -1:
		return r, false
	case -2: // was never committed
		r.Revision, r.State, r.Origin, r.Payload = "never", "Idle", "Idle", lifecycle.RawPayload(`{"N":1000}`)
	case -3: // is another object's
		r.ID += "x"
	case -4: // is none
		r.State, r.Origin = "", ""
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10: // the last one, most often
	default:
		r = pool[s.which%len(pool)]
	}
	return r, true
}

// TestRecallIsNoAnswer: whatever records a store recalls, and whoever writes
// meanwhile, every answer, everything an observer is told and everything that is
// written is as if they had been read.
func TestRecallIsNoAnswer(t *testing.T) {
	recalled, saved := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawPushed), 1, 40).Draw(rt, "script")
		var with, without []string
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			s := newReader()
			without = push(t, script, s, &recaller{reader: s}, s)
			wrong += s.wrong
		})
		synctest.Test(t, func(t *testing.T) {
			s := newReader()
			r := &recaller{reader: s}
			with = push(t, script, s, r, r)
			wrong += s.wrong
			recalled += r.recalled
			saved += r.saved
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
		for i := range max(len(with), len(without)) {
			if i >= len(with) || i >= len(without) || with[i] != without[i] {
				rt.Fatalf("line %d:\nread:     %s\nrecalled: %s", i, at(without, i), at(with, i))
			}
		}
	})
	require.NotZero(t, recalled)
	require.NotZero(t, saved, "no call has saved its Get")
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

func newReader() *reader {
	return &reader{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}, pool: make(map[lifecycle.Key][]lifecycle.StoredRecord)}
}

// push plays a script and returns what was seen.
func push(t *testing.T, script []pushed, s *reader, r *recaller, store lifecycle.Store) (log []string) {
	defer s.Close()
	say := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	text := func(err error) string {
		if errors.Is(err, lifecycle.ErrUnknownOutcome) {
			return "unknown"
		}
		return fmt.Sprint(err)
	}
	m := lifecycle.New(trolley, store, &lifecycle.Config[event]{
		Worker: agent, Done: []event{"done"}, Failed: []event{"fail"},
		Handlers: map[string]lifecycle.Handler{},
		Observer: lifecycle.Observer{
			Changed: func(h lifecycle.HistoryRow) {
				h.Token = lifecycle.Token{}
				say("told %+v", h)
			},
			Refused:  func(err error) { say("told %s", text(err)) },
			Reported: func(r lifecycle.Reported) { say("told %+v", r) },
		},
	})
	// Somebody else, of whom the store knows nothing but the records.
	away := newReader()
	away.MemoryStore, away.pool = s.MemoryStore, s.pool
	others := lifecycle.New(trolley, away, nil)
	ctx := t.Context()
	for i, p := range script {
		id, other := fmt.Sprint("t", p.Object), fmt.Sprint("t", 1-p.Object)
		key := lifecycle.Key{Machine: "trolley", ID: id}
		present := must(s.MemoryStore.Get(ctx, key))(t)
		change := p.change(m, other, &present, s.pool[key])
		s.lose, s.unknown, s.delayed, s.gets = 0, lifecycle.Token{}, nil, 0
		if p.What != "do" && p.What != "steps" {
			s.lose = p.Lose
		}
		r.which, r.late = p.Recall, p.Late
		s.others = func() {
			switch p.Others {
			case 1:
				_, _ = others.Fire(ctx, id, "note", user, &lifecycle.Change[size]{Edit: func(p *size) error { p.N++; return nil }})
			case 2:
				_, _ = others.Override(ctx, id, p.To, user, "why not", nil)
			case 3:
				_, _ = others.Override(ctx, id, "None", user, "why not", nil)
				_, _ = others.Create(ctx, id, "create", user, size{N: i})
			case 4:
				_, _ = others.Override(ctx, other, p.To, user, "why not", nil)
			}
		}
		func() {
			defer func() {
				if v := recover(); v != nil {
					say("%d panic: %v", i, v)
				}
			}()
			switch p.What {
			case "fire":
				rec, err := m.Fire(ctx, id, p.Event, p.Actor, change)
				say("%d fire %+v, %s", i, rec, text(err))
				if err == nil && s.gets == 0 {
					r.saved++
				}
			case "report":
				verdict, err := m.Report(ctx, id, present.Operation-min(present.Operation, lifecycle.OpID(p.Operation/2)), p.Event, p.Actor, "so they say")
				say("%d report %v, %s", i, verdict, text(err))
			case "override":
				rec, err := m.Override(ctx, id, p.To, p.Actor, "because", change)
				say("%d override %+v, %s", i, rec, text(err))
			case "create":
				rec, err := m.Create(ctx, id, "create", user, size{N: i})
				say("%d create %+v, %s", i, rec, text(err))
			case "do", "steps":
				work := lifecycle.Func(func(ctx context.Context) error {
					if p.Edit > 0 {
						lifecycle.EditOutcome(ctx, change.Edit)
					}
					if p.Fails {
						return errOdd
					}
					return nil
				})
				h, err := m.Do(ctx, id, p.Event, p.Actor, work, change)
				if err != nil {
					say("%d do %s", i, text(err))
					return
				}
				rec, err := h.Wait(ctx)
				var failed *lifecycle.OutcomeError
				if errors.As(err, &failed) {
					say("%d outcome %v", i, failed.Outcome)
				}
				say("%d do %+v, %+v", i, h.Admitted(), rec)
			case "together":
				a, b := m.Firing(id, p.Event, p.Actor, change), m.Firing(other, "note", user, nil)
				err := lifecycle.Together(ctx, a, b)
				say("%d together %+v, %+v, %s", i, a.Record(), b.Record(), text(err))
			case "get":
				rec, err := m.Get(ctx, id)
				say("%d get %+v, %s", i, rec, text(err))
			}
		}()
		synctest.Wait()
		s.interfere()
		if s.delayed != nil {
			require.NoError(t, s.write(ctx, s.delayed))
		}
		for _, id := range []string{"t0", "t1"} {
			rec, err := others.Get(ctx, id)
			say("%d is %+v, %v", i, rec, err)
		}
	}
	e := all(t, s.MemoryStore, "trolley", "t0", "t1")
	for _, rows := range e.History {
		for _, row := range rows {
			row.Token = lifecycle.Token{}
			say("%+v", row)
		}
	}
	say("%+v %+v", e.Messages, m.Verdicts())
	return log
}

// change is what the line says to do besides.
func (p *pushed) change(m *lifecycle.Manager[state, event, size], other string, present *lifecycle.StoredRecord, past []lifecycle.StoredRecord) *lifecycle.Change[size] {
	c := &lifecycle.Change[size]{Reason: "because", Force: p.Force, Messages: []lifecycle.Message{{Topic: "moved", Key: present.ID}}}
	switch p.Edit {
	case 1:
		c.Edit = func(p *size) error { p.N++; return nil }
	case 2:
		c.Edit = func(p *size) error {
			if p.N%2 == 1 {
				return fmt.Errorf("%w: %d", errOdd, p.N)
			}
			p.N++
			return nil
		}
	case 3:
		c.Edit = func(p *size) error {
			if p.N%3 == 2 {
				panic(fmt.Sprint("the edit looks at ", p.N))
			}
			p.N += 2
			return nil
		}
	case 4: // a conflict that comes from elsewhere
		c.Edit = func(p *size) error {
			if p.N%4 == 1 {
				return &lifecycle.ConflictError{Current: lifecycle.StoredRecord{State: "Elsewhere"}}
			}
			p.N += 3
			return nil
		}
	}
	switch p.Expect {
	case 1:
		c.Expect = present.Revision
	case 2:
		if len(past) > 0 {
			c.Expect = past[len(past)/2].Revision
		}
	}
	if p.Operation > 0 && present.Operation >= lifecycle.OpID(p.Operation) {
		c.Operation = present.Operation - lifecycle.OpID(p.Operation) + 1
	}
	switch p.Require {
	case 1:
		c.Require = []lifecycle.Precondition{m.Require(other, "Idle", "None")}
	case 2:
		c.Require = []lifecycle.Precondition{m.Require(other)}
	}
	return c
}
