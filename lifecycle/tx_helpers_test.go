package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// part is one change of a transaction, before there is one.
type part interface{ addTo(*lifecycle.Tx) }

type staged[S comparable, T any] struct {
	add func(*lifecycle.Tx) *lifecycle.TxResult[S, T]
	res *lifecycle.TxResult[S, T]
}

func (s *staged[S, T]) addTo(tx *lifecycle.Tx) { s.res = s.add(tx) }
func (s *staged[S, T]) Record() (rec lifecycle.Record[S, T]) {
	if s.res != nil {
		rec = s.res.Record()
	}
	return rec
}

func firing[S, E comparable, T any](m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, change *lifecycle.Change[T]) *staged[S, T] {
	return &staged[S, T]{add: func(tx *lifecycle.Tx) *lifecycle.TxResult[S, T] { return m.In(tx).Fire(id, e, actor, change) }}
}

func creating[S, E comparable, T any](m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, payload T, change *lifecycle.Change[T]) *staged[S, T] {
	return &staged[S, T]{add: func(tx *lifecycle.Tx) *lifecycle.TxResult[S, T] {
		return m.In(tx).Create(id, e, actor, payload, change)
	}}
}

func adding[S, E comparable, T any](m *lifecycle.Manager[S, E, T], id string, actor fsm.Actor, payload T, change *lifecycle.Change[T]) *staged[S, T] {
	return &staged[S, T]{add: func(tx *lifecycle.Tx) *lifecycle.TxResult[S, T] {
		return m.In(tx).Add(id, initial(m), actor, payload, change)
	}}
}

// txOf is a transaction of these changes.
func txOf(parts ...part) *lifecycle.Tx {
	var tx lifecycle.Tx
	for _, p := range parts {
		p.addTo(&tx)
	}
	return &tx
}

// commitAll commits these changes.
func commitAll(ctx context.Context, parts ...part) error { return txOf(parts...).Commit(ctx) }

// needing is a transaction of conditions only.
func needing(conditions ...lifecycle.Precondition) *lifecycle.Tx {
	var tx lifecycle.Tx
	tx.Require(conditions...)
	return &tx
}

// doWith starts an operation whose Work.With has these changes.
func doWith[S, E comparable, T any](ctx context.Context, m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, work lifecycle.Work, change *lifecycle.Change[T], parts ...part) (*lifecycle.Ticket[S, T], error) {
	work.With = txOf(parts...)
	return m.Do(ctx, id, e, actor, work, change)
}

// doParts is doWith, and fails the test on an error.
func doParts[S, E comparable, T any](t *testing.T, m *lifecycle.Manager[S, E, T], id string, e E, actor fsm.Actor, work lifecycle.Work, change *lifecycle.Change[T], parts ...part) *lifecycle.Ticket[S, T] {
	t.Helper()
	ticket, err := doWith(t.Context(), m, id, e, actor, work, change, parts...)
	require.NoError(t, err)
	return ticket
}
