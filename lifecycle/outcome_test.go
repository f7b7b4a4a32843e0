package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// changing are the calls that write, each on objects that it finds ready for
// it: "a" is Updating in operation 2, "none" does not exist.
var changing = []struct {
	name, id string
	call     func(ctx context.Context, m *sizedManager) (sequence uint64, err error)
}{
	{"create", "none", func(ctx context.Context, m *sizedManager) (uint64, error) {
		rec, err := m.Create(ctx, "none", "create", user, size{N: 1}, nil)
		return rec.Sequence, err
	}},
	{"fire", "a", func(ctx context.Context, m *sizedManager) (uint64, error) {
		rec, err := m.Fire(ctx, "a", "done", agent, resize(3))
		return rec.Sequence, err
	}},
	{"report", "a", func(ctx context.Context, m *sizedManager) (uint64, error) {
		verdict, err := m.Report(ctx, "a", 2, "done", agent, nil)
		if err == nil && verdict != lifecycle.Applied {
			err = errors.New(verdict.String())
		}
		return 4, err
	}},
}

func tokens(t *testing.T, store *hooked, id string) (list []lifecycle.Token) {
	t.Helper()
	rows, err := store.History(t.Context(), lifecycle.Key{Machine: "vm", ID: id}, 0, 100)
	require.NoError(t, err)
	for _, row := range rows {
		list = append(list, row.Token)
	}
	return list
}

func count(list []lifecycle.Token, token lifecycle.Token) (n int) {
	for _, have := range list {
		if have == token {
			n++
		}
	}
	return n
}

// TestLostAnswer: the answer of the store is lost, and the commit was written or
// not. The manager sends the same token again and returns the result.
func TestLostAnswer(t *testing.T) {
	for _, wrote := range []bool{true, false} {
		for _, c := range changing {
			t.Run(fmt.Sprintf("%s, written %t", c.name, wrote), func(t *testing.T) {
				m, store := vms(t)
				updating(t, m, "a")
				before := len(tokens(t, store, c.id))
				store.reset()
				store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
					switch {
					case n > 1:
						return write()
					case wrote:
						return store.lose(t, commit)
					}
					return lifecycle.ErrUnknownOutcome
				}
				sequence, err := c.call(t.Context(), m)
				require.NoError(t, err)
				require.EqualValues(t, before+1, sequence)
				require.Len(t, store.tokens, 2)
				require.Equal(t, store.tokens[0], store.tokens[1], "sent again under another name")
				after := tokens(t, store, c.id)
				require.Len(t, after, before+1)
				require.Equal(t, store.tokens[0], after[before])
			})
		}
	}
}

// TestSettledRecord: the record of a change whose answer was lost is the one
// that was written, filled in by the store, also if the object has moved since.
func TestSettledRecord(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "a")
	store.reset()
	var moved lifecycle.Record[state, size]
	store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
		if n > 1 {
			return write()
		}
		lost := store.lose(t, commit)
		moved = fire(t, store.others(), "a", "update", user, resize(9))
		return lost
	}
	rec := fire(t, m, "a", "done", agent, nil)
	require.Equal(t, state("Ready"), rec.State)
	require.EqualValues(t, 4, rec.Sequence)
	require.NotEmpty(t, rec.Revision)
	require.False(t, rec.ChangedAt.IsZero())
	require.Equal(t, moved, get(t, m, "a"))
	rows := rowsOf(t, m, "a", 3, 0)
	require.Len(t, rows, 2)
	require.Equal(t, rec.Revision, rows[0].Revision)
}

// TestLostAnswerAndCaller: the context of the caller ends after the lost answer, or while the
// commit is sent again. The manager resolves the outcome all the same.
func TestLostAnswerAndCaller(t *testing.T) {
	for _, wrote := range []bool{true, false} {
		for _, ends := range []int{1, 2} {
			t.Run(fmt.Sprintf("written %t, ends during commit %d", wrote, ends), func(t *testing.T) {
				m, store := vms(t)
				updating(t, m, "a")
				store.reset()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
					if n == ends {
						cancel()
					}
					switch {
					case n > 1:
						return write()
					case wrote:
						return store.lose(t, commit)
					}
					return lifecycle.ErrUnknownOutcome
				}
				rec, err := m.Fire(ctx, "a", "done", agent, nil)
				require.NoError(t, err)
				require.EqualValues(t, 4, rec.Sequence)
				require.Len(t, store.tokens, ends+1)
				require.Equal(t, 1, count(tokens(t, store, "a"), store.tokens[0]))
			})
		}
	}
}

// TestLostThenOvertaken: the answer of the store is lost, the commit was not
// written, and another writer moves the object before the commit is sent again. The
// result is a conflict and never a write.
func TestLostThenOvertaken(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "a")
	store.reset()
	store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
		if n > 1 {
			return write()
		}
		fire(t, store.others(), "a", "progress", agent, nil)
		return lifecycle.ErrUnknownOutcome
	}
	_, err := m.Fire(t.Context(), "a", "done", agent, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, "progress", winnerOf(t, m, err).Event)
	require.Zero(t, count(tokens(t, store, "a"), store.tokens[0]))
}

// TestUnknownOutcome: a store that never answers gives an error with the token. The
// history has one row with that token or none, never two.
func TestUnknownOutcome(t *testing.T) {
	errStore := errors.New("the line is dead")
	for _, wrote := range []bool{true, false} {
		for _, c := range changing {
			t.Run(fmt.Sprintf("%s, written %t", c.name, wrote), func(t *testing.T) {
				m, store := vms(t)
				updating(t, m, "a")
				before := all(t, store.MemoryStore, "vm", "a", "none")
				store.reset()
				store.onCommit = func(_ int, commit *lifecycle.Commit, _ func() error) error {
					if wrote {
						_ = store.lose(t, commit) // every time: the store must find the token
					}
					return errors.Join(errStore, lifecycle.ErrUnknownOutcome)
				}
				_, err := c.call(t.Context(), m)
				require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
				require.ErrorIs(t, err, errStore)
				require.Equal(t, 504, lifecycle.HTTPStatus(err))
				unknown, ok := errors.AsType[*lifecycle.UnknownOutcomeError](err)
				require.True(t, ok)
				require.ErrorContains(t, err, "unknown outcome of commit "+unknown.Token.String())
				e, ok := errors.AsType[*lifecycle.Error](err)
				require.True(t, ok)
				require.Equal(t, c.name, e.Verb)
				require.Equal(t, c.id, e.ID)

				require.Greater(t, len(store.tokens), 1, "not settled")
				for _, token := range store.tokens {
					require.Equal(t, unknown.Token, token)
				}
				if !wrote {
					require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "none"))
				}
				want := 0
				if wrote {
					want = 1
				}
				require.Equal(t, want, count(tokens(t, store, c.id), unknown.Token))
			})
		}
	}
}

// TestUnknownStaysUnknown: after a lost answer, only an answer of the store about
// this token resolves the outcome. An error of the second attempt does not mean that the
// first one was not written.
func TestUnknownStaysUnknown(t *testing.T) {
	errDisk := errors.New("disk full")
	for _, second := range []struct {
		name string
		err  error
	}{
		{"the context ends", context.Canceled},
		{"the store is closed", lifecycle.ErrClosed},
		{"the store fails", errDisk},
	} {
		t.Run(second.name, func(t *testing.T) {
			m, store := vms(t)
			updating(t, m, "a")
			store.reset()
			store.onCommit = func(n int, commit *lifecycle.Commit, _ func() error) error {
				if n == 1 {
					return store.lose(t, commit)
				}
				return second.err
			}
			_, err := m.Fire(t.Context(), "a", "done", agent, nil)
			rec, readErr := store.MemoryStore.Get(t.Context(), lifecycle.Key{Machine: "vm", ID: "a"})
			require.NoError(t, readErr)
			require.EqualValues(t, "Ready", rec.State)
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome, "it was written, and the error denies it")
			require.ErrorIs(t, err, second.err)
			unknown, ok := errors.AsType[*lifecycle.UnknownOutcomeError](err)
			require.True(t, ok)
			require.Equal(t, 1, count(tokens(t, store, "a"), unknown.Token))
		})
	}
}

// TestRefusalAfterALostAnswer: the answer of the store is lost, and the store refuses the
// second sending. The first one may have been written: the error matches no refusal.
func TestRefusalAfterALostAnswer(t *testing.T) {
	for sentinel, refusal := range map[error]error{
		lifecycle.ErrConflict:     &lifecycle.ConflictError{},
		lifecycle.ErrPrecondition: &lifecycle.PreconditionError{},
		lifecycle.ErrStale:        &lifecycle.OwnerError{},
	} {
		t.Run(sentinel.Error(), func(t *testing.T) {
			require.ErrorIs(t, refusal, sentinel)
			m, store := vms(t)
			updating(t, m, "a")
			store.reset()
			store.onCommit = func(n int, commit *lifecycle.Commit, _ func() error) error {
				if n == 1 {
					return store.lose(t, commit)
				}
				return refusal
			}
			_, err := m.Fire(t.Context(), "a", "done", agent, nil)
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
			require.NotErrorIs(t, err, sentinel)
			require.ErrorContains(t, err, refusal.Error())
		})
	}
}

// TestLostCreateIsNotMadeTwice: a create was written and its answer lost; then
// the object was removed and its removal forgotten. The store has forgotten
// the token, and creating the object again would be a second write.
func TestLostCreateIsNotMadeTwice(t *testing.T) {
	m, store := vms(t)
	store.KeepRemoved(-1)
	store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
		if n > 1 {
			return write()
		}
		lost := store.lose(t, commit)
		others := store.others()
		fire(t, others, "a", "delete", user, nil)
		fire(t, others, "a", "done", agent, nil)
		return lost
	}
	_, err := m.Create(t.Context(), "a", "create", user, size{}, nil)
	for _, token := range store.tokens {
		require.Equal(t, store.tokens[0], token, "the create was sent under a second token")
	}
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome, "it was written once")
	absent(t, m, "a")
}

// TestForgottenToken: a commit was written and its answer lost, and so much has
// happened since that the store has forgotten the token. Its conflict does not mean that
// the commit was not written. The manager does not make the change a second time, and
// its error does not deny the first one.
func TestForgottenToken(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(m *sizedManager) error
	}{
		{"fire", func(m *sizedManager) error {
			_, err := m.Fire(t.Context(), "a", "touch", user, nil)
			return err
		}},
		{"report", func(m *sizedManager) error {
			_, err := m.Report(t.Context(), "a", 1, "touch", user, nil)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, store := vms(t)
			store.KeepHistory = 1
			ready(t, m, "a") // two commits
			store.reset()
			store.onCommit = func(n int, commit *lifecycle.Commit, write func() error) error {
				if n > 1 {
					return write()
				}
				lost := store.lose(t, commit)
				fire(t, store.others(), "a", "touch", agent, nil)
				return lost
			}
			err := c.call(m)
			rec, readErr := m.Get(t.Context(), "a")
			require.NoError(t, readErr)
			require.EqualValues(t, 4, rec.Sequence, "written twice")
			unknown, ok := errors.AsType[*lifecycle.UnknownOutcomeError](err)
			require.True(t, ok, "it was written, and the error denies it: %v", err)
			require.Equal(t, store.tokens[0], unknown.Token)
		})
	}
}

// TestCertainFailure: an error that is neither a conflict nor an unknown outcome
// means that nothing was written, and is not tried again.
func TestCertainFailure(t *testing.T) {
	errDisk := errors.New("disk full")
	for _, c := range changing {
		t.Run(c.name, func(t *testing.T) {
			m, store := vms(t)
			updating(t, m, "a")
			before := all(t, store.MemoryStore, "vm", "a", "none")
			store.reset()
			store.onCommit = func(int, *lifecycle.Commit, func() error) error { return errDisk }
			_, err := c.call(t.Context(), m)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, 500, lifecycle.HTTPStatus(err))
			require.Len(t, store.tokens, 1)
			require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "none"))
		})
	}
}
