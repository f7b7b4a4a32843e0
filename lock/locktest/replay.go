package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// replay is one sequence of vectors on its way.
type replay struct {
	*trial
	lockers map[string]lock.Locker // by system
	handles map[handleName]*handle
	queue   []*handle // that wait
}

type handleName struct{ system, name string }

// handle is what a handle stands for since its last request that was granted or
// has to wait.
type handle struct {
	name string
	held *lock.Held // nil while it waits
	call *call      // that waits, or has waited
}

func (s *sequence) run(t *trial) {
	r := &replay{trial: t, lockers: map[string]lock.Locker{}, handles: map[handleName]*handle{}}
	for i := range s.Steps {
		step := &s.Steps[i]
		err := r.take(step)
		if err == nil {
			err = r.woken(step)
		}
		if err != nil {
			t.Fatalf("step %d, %s: %v", i+1, step, err)
		}
	}
}

func (s *vectorStep) String() string {
	var b strings.Builder
	b.WriteString(s.Op)
	if s.Handle != nil {
		b.WriteString(" " + *s.Handle)
	}
	locks := s.Locks
	if s.Path != nil || s.Mode != nil {
		locks = []vectorLock{s.vectorLock}
	}
	for _, l := range locks {
		if l.Mode != nil {
			b.WriteString(" " + *l.Mode)
		}
		if l.Path != nil {
			fmt.Fprintf(&b, " %q", *l.Path)
		}
	}
	return b.String()
}

func (s *vectorStep) key() handleName {
	var k handleName
	if s.System != nil {
		k.system = *s.System
	}
	if s.Handle != nil {
		k.name = *s.Handle
	}
	return k
}

func (r *replay) locker(system string) lock.Locker {
	if r.lockers[system] == nil {
		r.lockers[system] = r.l // the trial's is the first
		if len(r.lockers) > 1 {
			r.lockers[system] = r.fresh(nil)
		}
	}
	return r.lockers[system]
}

func (r *replay) take(s *vectorStep) error {
	switch s.Op {
	case "try":
		return r.try(s)
	case "lock":
		return r.lock(s)
	case "unlock":
		return r.unlockHandle(s)
	case "cancel":
		return r.cancel(s)
	case "convert":
		return r.convert(s)
	case "count":
		return r.count(s)
	case "idle": // all systems, if the step names none
		for system, l := range r.lockers {
			if s.System != nil && system != *s.System {
				continue
			}
			if fault := r.eventually(func() string { return busy(r.Context(), l) }); fault != "" {
				return errors.New(fault)
			}
		}
		return nil
	}
	panic("locktest: a malformed step is parsed")
}

// answer compares what came with what is wanted.
func answer(s *vectorStep, got string, names []string, more bool) error {
	if got != s.want() {
		return fmt.Errorf("the answer is %s, not %s", got, s.want())
	}
	if s.With == nil {
		return nil
	}
	want := slices.Compact(slices.Sorted(slices.Values(s.With)))
	missing := slices.ContainsFunc(want, func(n string) bool { return !slices.Contains(names, n) })
	wrong := slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(want, n) })
	if wrong || len(names) == 0 || missing && !more {
		return fmt.Errorf("the answer names %q, not %q", names, want)
	}
	return nil
}

// outcome turns an error into the answer of a vector.
func outcome(err error) (got string, names []string, more bool, unknown error) {
	conflict, isConflict := errors.AsType[*lock.ConflictError](err)
	switch {
	case err == nil:
		return "ok", nil, false, nil
	case errors.Is(err, lock.ErrInvalid):
		return "invalid", nil, false, nil
	case errors.Is(err, lock.ErrNotHeld):
		return "not-held", nil, false, nil
	case isConflict && errors.Is(err, lock.ErrConflict):
		for _, h := range conflict.Holders {
			names = append(names, h.Owner)
		}
		return "conflict", slices.Compact(slices.Sorted(slices.Values(names))), conflict.More, nil
	}
	return "", nil, false, fmt.Errorf("an error that no vector has: %w", err)
}

func (r *replay) try(s *vectorStep) error {
	k := s.key()
	rs, err := s.requests()
	var held *lock.Held
	if err == nil {
		held, err = r.tryStep(r.locker(k.system), s, rs)
	}
	got, names, more, unknown := outcome(err)
	if unknown != nil {
		return unknown
	}
	if got == "ok" {
		if fault := unsound(held, rs); fault != "" {
			return errors.New(fault)
		}
		r.handles[k] = &handle{name: k.name, held: held}
	}
	return answer(s, got, names, more)
}

// tryStep asks for a list as a list, also if it has one member or none.
func (r *replay) tryStep(l lock.Locker, s *vectorStep, rs []lock.Request) (*lock.Held, error) {
	o := by(*s.Handle)
	if s.Locks != nil {
		return l.TryLockAll(r.Context(), rs, o)
	}
	return l.TryLock(r.Context(), rs[0], o)
}

func (r *replay) lock(s *vectorStep) error {
	k := s.key()
	l := r.locker(k.system)
	rs, err := s.requests()
	if err != nil {
		return answer(s, "invalid", nil, false)
	}
	if s.want() == "waiting" && s.With != nil {
		probe, err := r.tryStep(l, s, rs)
		got, names, more, unknown := outcome(err)
		if probe != nil || got != "conflict" {
			return fmt.Errorf("it is to wait, but a TryLock before it is: %s %w", got, unknown)
		}
		if err := answer(s, "waiting", names, more); err != nil {
			return err
		}
	}
	h := &handle{name: k.name, call: r.begin(r.Context(), l, rs, by(k.name))}
	if s.want() == "waiting" {
		if fault := r.queued(r.Context(), l, h.call); fault != "" {
			return errors.New(fault)
		}
		if !h.call.returned() {
			r.handles[k], r.queue = h, append(r.queue, h)
			return nil
		}
	}
	if fault := r.back(h.call); fault != "" {
		return errors.New(fault)
	}
	got, _, _, unknown := outcome(h.call.err)
	if unknown != nil {
		return unknown
	}
	if got == "ok" {
		if fault := unsound(h.call.held, rs); fault != "" {
			return errors.New(fault)
		}
		h.held = h.call.held
		r.handles[k] = h
	}
	return answer(s, got, nil, false)
}

// holds returns the grant of the step's handle, nil if it has none.
func (r *replay) holds(s *vectorStep) *lock.Held {
	if h := r.handles[s.key()]; h != nil {
		return h.held
	}
	return nil
}

func (r *replay) unlockHandle(s *vectorStep) error {
	held := r.holds(s)
	if held == nil {
		return answer(s, "not-held", nil, false)
	}
	got, _, _, unknown := outcome(held.Check())
	if unknown != nil {
		return unknown
	}
	if err := held.Unlock(r.Context()); err != nil {
		return fmt.Errorf("the error of Unlock: %w", err)
	}
	return answer(s, got, nil, false)
}

func (r *replay) cancel(s *vectorStep) error {
	h := r.handles[s.key()]
	i := slices.Index(r.queue, h)
	if h == nil || i < 0 {
		return answer(s, "not-held", nil, false)
	}
	r.queue = slices.Delete(r.queue, i, i+1)
	h.call.cancel(errGivenUp)
	if fault := r.back(h.call); fault != "" {
		return errors.New(fault)
	}
	switch err := h.call.err; {
	case err == nil:
		return errors.New("the cancelled wait is granted")
	case !errors.Is(err, context.Canceled):
		return fmt.Errorf("the error of the cancelled wait: %w", err)
	}
	return answer(s, "ok", nil, false)
}

func (r *replay) convert(s *vectorStep) error {
	held := r.holds(s)
	if held == nil {
		return answer(s, "not-held", nil, false)
	}
	m, err := lock.ParseMode(*s.Mode)
	if err == nil {
		lower := !slices.ContainsFunc(held.Requests(), func(q lock.Request) bool { return !atLeast(q.Mode, m) })
		if lower {
			err = held.Downgrade(r.Context(), m)
		} else {
			err = held.Upgrade(r.Context(), m)
		}
	}
	got, names, more, unknown := outcome(err)
	if unknown != nil {
		return unknown
	}
	return answer(s, got, names, more)
}

// count sums up all systems, if the step names none.
func (r *replay) count(s *vectorStep) error {
	fault := r.eventually(func() string {
		var held, waiting int
		for system, l := range r.lockers {
			if s.System != nil && system != *s.System {
				continue
			}
			snapshot, err := l.Snapshot(r.Context())
			if err != nil {
				return fmt.Sprintf("Snapshot: %v", err)
			}
			held, waiting = held+snapshot.Held, waiting+snapshot.Waiting
		}
		if held != *s.Held || waiting != *s.Waiting {
			return fmt.Sprintf("%d are held and %d wait, not %d and %d", held, waiting, *s.Held, *s.Waiting)
		}
		return ""
	})
	if fault != "" {
		return errors.New(fault)
	}
	return nil
}

// woken demands that a step has granted what it says, in that order, and nothing
// else.
func (r *replay) woken(s *vectorStep) error {
	for _, name := range s.Granted {
		i := slices.IndexFunc(r.queue, func(h *handle) bool { return h.name == name })
		if i < 0 {
			return fmt.Errorf("it is to grant %q, which does not wait", name)
		}
		h := r.queue[i]
		if fault := r.back(h.call); fault != "" {
			return fmt.Errorf("it is to grant %q: %s", name, fault)
		}
	}
	r.nothingMore()
	var granted []*handle
	for _, h := range r.queue {
		if !h.call.returned() {
			continue
		}
		if h.call.err != nil {
			return fmt.Errorf("the wait of %q: %w", h.name, h.call.err)
		}
		h.held = h.call.held
		if fault := unsound(h.held, h.call.rs); fault != "" {
			return errors.New(fault)
		}
		granted = append(granted, h)
	}
	// The tokens tell in which order they were granted.
	slices.SortFunc(granted, func(a, b *handle) int { return cmp.Compare(a.held.Token(), b.held.Token()) })
	var names []string
	for _, h := range granted {
		names = append(names, h.name)
		i := slices.Index(r.queue, h)
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	if !slices.Equal(names, s.Granted) {
		return fmt.Errorf("it grants %q, not %q", names, s.Granted)
	}
	return nil
}
