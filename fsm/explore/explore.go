package explore

import (
	"context"
	"errors"
	"fmt"
)

// Config bounds an exploration. nil is the zero Config, which has the defaults.
type Config struct {
	// Workers is the number of goroutines. Default: GOMAXPROCS.
	Workers int
	// MaxBytes is the memory in bytes that states, edges and tables may take, as
	// [Verdict.Bytes] counts it. Default: 1 GiB. Explore checks the bound after every
	// batch of a few thousand states and may exceed it by one batch.
	MaxBytes int64
	// SkipLeadsTo leaves the properties of [System.LeadsTo] unchecked. Without them an
	// exploration needs less time and memory. Default: false.
	SkipLeadsTo bool
	// Progress receives how far the exploration is: what it does, how many states are done,
	// and of how many. While the exploration searches for states, the total is the number of
	// states that it has found. Progress runs in the goroutine of the caller of Explore,
	// after every few thousand states. Default: none.
	Progress func(what string, done, total int)
}

const defaultMaxBytes = 1 << 30

// maxBytes returns the bound on memory.
func (c *Config) maxBytes() int64 {
	if c.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return c.MaxBytes
}

// Explore visits every state that the system can reach, breadth first, and
// returns the verdict. An error reports a faulty description of the system and
// matches [ErrModel]. An invariant that does not hold, a bound and a context that
// ended are in the verdict: use [Verdict.Err]. A nil config is the default.
//
// Explore starts goroutines and returns after all of them have ended.
func (s *System) Explore(ctx context.Context, config *Config) (*Verdict, error) {
	if config == nil {
		config = &Config{}
	}
	if problems := s.check(); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	t := newTables(s)
	starts := t.starts(config.maxBytes())
	if starts == nil {
		return &Verdict{System: s.name, Reason: fmt.Errorf("%w: %d", ErrMaxBytes, config.maxBytes())}, nil
	}
	return newSearch(t, config).run(ctx, starts)
}
