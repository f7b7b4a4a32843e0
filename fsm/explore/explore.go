package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Options bound an exploration. nil is the zero Options, which are the defaults.
type Options struct {
	// Workers is the number of goroutines, of which more than 32 are not used; 0:
	// GOMAXPROCS.
	Workers int
	// MaxStates is how many states may be reached; 0: as many as MaxBytes holds.
	MaxStates int
	// MaxBytes is how much memory states, edges and tables may take, as
	// [Verdict.Bytes] counts it; 0: 1 GiB. Both bounds are looked at after every
	// batch of a few thousand states, and may be exceeded by as much as one adds.
	// Beyond about 500 million states, or two billion edges, there is no number for
	// another one, which is ErrMaxBytes too.
	MaxBytes int64
}

// Explore visits every state that the system can reach, breadth first, and
// returns what it found. An error is about the description of the system, and
// matches [ErrModel]; everything else is in the [Verdict]. A caller who looks at
// the error only has not looked: see [Verdict.Err].
func (s *System) Explore(ctx context.Context, o *Options) (*Verdict, error) {
	if o == nil {
		o = &Options{}
	}
	if problems := s.check(); len(problems) > 0 {
		if len(problems) == 1 {
			return nil, problems[0]
		}
		return nil, errors.Join(problems...)
	}
	t := newTables(s)
	starts := t.starts(o.bytes())
	if starts == nil {
		return &Verdict{System: s.name, Reason: fmt.Errorf("%w: %d", ErrMaxBytes, o.bytes())}, nil
	}
	for {
		t.lay = newLayout(t)
		if t.lay == nil {
			return nil, &ModelError{System: s.name, Problem: fmt.Sprintf("its states need more than %d bits", 64*maxWords)}
		}
		v, err := exploreWith(ctx, t, starts, o)
		if !errors.Is(err, errOutgrown) {
			return v, err
		}
	}
}

// errOutgrown: a table has more entries than its field holds. The exploration
// starts again with wider fields; what handlers said is known by then.
var errOutgrown = errors.New("check: outgrown")

func exploreWith(ctx context.Context, t *tables, starts [][]uint32, o *Options) (*Verdict, error) {
	switch n := t.lay.words; {
	case n <= 1:
		return explore[[1]uint64](ctx, t, starts, o)
	case n == 2:
		return explore[[2]uint64](ctx, t, starts, o)
	case n == 3:
		return explore[[3]uint64](ctx, t, starts, o)
	case n == 4:
		return explore[[4]uint64](ctx, t, starts, o)
	case n <= 6:
		return explore[[6]uint64](ctx, t, starts, o)
	case n <= 8:
		return explore[[8]uint64](ctx, t, starts, o)
	}
	return explore[[16]uint64](ctx, t, starts, o)
}

// bytes is the bound on memory.
func (o *Options) bytes() int64 {
	if o.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return o.MaxBytes
}

// starts returns the numbers of the initial states, by field; nil if their list
// alone takes more than so many bytes.
func (t *tables) starts(most int64) [][]uint32 {
	all := [][]uint32{nil}
	each := int64(24 + 4*(len(t.sys.actors)+len(t.sys.channels)+len(t.sys.budgets)))
	for i, a := range t.sys.actors {
		var longer [][]uint32
		ids := a.start(t.locals[i])
		if int64(len(all))*int64(len(ids)) > most/each {
			return nil
		}
		for _, s := range all {
			for _, id := range ids {
				longer = append(longer, append(slices.Clip(s), id))
			}
		}
		all = longer
	}
	var rest []uint32
	for i, c := range t.sys.channels {
		ch := t.channels[i]
		list := c.start(ch.messages)
		if !c.is.Ordered {
			slices.Sort(list)
		}
		rest = append(rest, ch.add(list))
	}
	for _, b := range t.sys.budgets {
		rest = append(rest, uint32(b.most))
	}
	for i := range all {
		all[i] = append(all[i], rest...)
	}
	return all
}
