package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var (
	crane  = lifecycle.Key{Machine: "crane", ID: "a"}
	before = lifecycle.Token{4} // of the commit that wrote revision 4
)

// moved returns a commit that moves the crane on from revision 4.
func moved() *lifecycle.Commit {
	return &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
		Expect: "4-04000000000000000000000000000000", From: "idle", FromOrigin: "idle", Timeout: time.Second,
		To: lifecycle.StoredRecord{Key: crane, State: "moving", Origin: "idle", Sequence: 3},
	}}}
}

// craneRow is the row of the crane.
func craneRow(state string, revision, sequence int64, token lifecycle.Token) [][]driver.Value {
	empty := []byte{}
	return [][]driver.Value{{
		"crane", "a", state, state, "", revision, sequence, int64(0), nil, nil, int64(0), "", "", int64(0), "", empty, empty, nil,
		int64(1_000_000), "", "", "", empty, empty, token[:], int64(0),
	}}
}

// historyRow is the token and the time of a history row.
func historyRow(token lifecycle.Token) reply {
	return reply{rows: [][]driver.Value{{token[:], int64(1_000_000)}}}
}

const (
	isUpdate  = "UPDATE `interlock_objects`"
	isRow     = "INSERT INTO `interlock_history`"
	isRecord  = "SELECT `machine`"
	isHistory = "SELECT `token`"
)

// answers returns the replies of a fake MySQL by the beginning of the statement: one
// after the other, and then the last one for ever.
func answers(by map[string][]reply) func(string, []driver.NamedValue) reply {
	return func(query string, _ []driver.NamedValue) reply {
		for prefix, list := range by {
			if strings.HasPrefix(query, prefix) && len(list) > 0 {
				if len(list) > 1 {
					by[prefix] = list[1:]
				}
				return list[0]
			}
		}
		return reply{affected: 1}
	}
}

var (
	done = reply{affected: 1, last: 1_000_000}
	cut  = reply{err: io.ErrUnexpectedEOF}
)

func TestLostCommit(t *testing.T) {
	c, other := moved(), lifecycle.NewToken()
	for _, x := range []struct {
		name     string
		by       map[string][]reply
		is       error // nil: written
		commits  int
		attempts int
	}{
		{
			name: "the history has it", commits: 1, attempts: 1,
			by: map[string][]reply{
				"COMMIT": {cut}, isRecord: {{rows: craneRow("moving", 5, 3, c.Token)}}, isHistory: {historyRow(c.Token)},
			},
		},
		{
			name: "the history has it, at the second look", commits: 1, attempts: 1,
			by: map[string][]reply{
				"COMMIT": {cut}, isRecord: {cut, {rows: craneRow("broken", 6, 4, other)}}, isHistory: {historyRow(c.Token)},
			},
		},
		{
			name: "another commit has its place", is: lifecycle.ErrConflict, commits: 1, attempts: 1,
			by: map[string][]reply{
				"COMMIT": {cut}, isRecord: {{rows: craneRow("broken", 6, 4, other)}}, isHistory: {historyRow(other)},
			},
		},
		{
			name: "the row at its place was trimmed", is: lifecycle.ErrUnknownOutcome, commits: 1, attempts: 1,
			by: map[string][]reply{
				"COMMIT": {cut}, isRecord: {{rows: craneRow("broken", 16, 14, other)}}, isHistory: {{}},
			},
		},
		{
			name: "the record is unchanged: the commit is sent again", commits: 2, attempts: 2,
			by: map[string][]reply{
				"COMMIT": {cut, done}, isRecord: {{rows: craneRow("idle", 4, 2, before)}},
			},
		},
		{
			name: "the engine does not answer", is: lifecycle.ErrUnknownOutcome, commits: 1, attempts: 1,
			by: map[string][]reply{"COMMIT": {cut}, isRecord: {cut}, isUpdate: {done, cut}, "BEGIN": {{}, cut}},
		},
		{
			name: "the engine refuses to search", is: lifecycle.ErrUnknownOutcome, commits: 1, attempts: 1,
			by: map[string][]reply{"COMMIT": {cut}, isRecord: {{err: stateError("42501")}}},
		},
		{
			name: "the engine refuses the second attempt", is: lifecycle.ErrUnknownOutcome, commits: 1, attempts: 2,
			by: map[string][]reply{
				"COMMIT": {cut}, isRecord: {{rows: craneRow("idle", 4, 2, before)}}, isUpdate: {done, {err: stateError("23514")}},
			},
		},
		{
			name: "the engine refuses the commit", is: stateError("23514"), commits: 1, attempts: 1,
			by: map[string][]reply{"COMMIT": {{err: stateError("23514")}}},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			if len(x.by[isUpdate]) == 0 {
				x.by[isUpdate] = []reply{done}
			}
			store, f, _ := opened(t, MySQL, nil, answers(x.by))
			sent := *c
			sent.Changes = append([]lifecycle.StoredChange(nil), c.Changes...)
			err := store.Commit(t.Context(), &sent)
			require.ErrorIs(t, err, x.is)
			commits, updates := 0, 0
			for _, q := range f.statements() {
				if q == "COMMIT" {
					commits++
				}
				if strings.HasPrefix(q, isUpdate) {
					updates++
				}
			}
			require.Equal(t, x.commits, commits)
			require.Equal(t, x.attempts, updates)
			if x.is == nil {
				require.EqualValues(t, "5-"+c.Token.String(), sent.Changes[0].To.Revision)
				require.Equal(t, time.Unix(1, 0).UTC(), sent.Changes[0].To.ChangedAt)
				require.Equal(t, time.Unix(2, 0).UTC(), sent.Changes[0].To.Deadline)
				return
			}
			require.Empty(t, sent.Changes[0].To.Revision, "nothing is filled")
			if unknown, ok := errors.AsType[*lifecycle.UnknownOutcomeError](err); ok {
				require.Equal(t, c.Token, unknown.Token)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.NotErrorIs(t, err, lifecycle.ErrConflict)
			}
		})
	}
}

// A driver's Rollback has no context. Commit waits for it until the end of its own
// context.
func TestRollbackThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	store, _, _ := opened(t, MySQL, nil, func(query string, _ []driver.NamedValue) reply {
		switch {
		case strings.HasPrefix(query, isUpdate):
			return reply{err: stateError("23514")}
		case query == "ROLLBACK":
			cancel()
			<-release
		}
		return done
	})
	result := make(chan error, 1)
	go func() { result <- store.Commit(ctx, moved()) }()
	select {
	case err := <-result:
		close(release)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome, "nothing was written")
	case <-time.After(20 * time.Second):
		close(release)
		require.Fail(t, "Commit waits for the rollback")
	}
}

// A dead owner at the second sending does not show that the first one was not written.
func TestLostThenOwnerDead(t *testing.T) {
	c := moved()
	c.Owner = lifecycle.OwnerRef{Name: "alpha"}
	sent := 0
	store, _, _ := opened(t, MySQL, nil, func(query string, args []driver.NamedValue) reply {
		switch {
		case query == "COMMIT":
			return reply{err: io.ErrUnexpectedEOF}
		case strings.HasPrefix(query, isUpdate):
			sent++
			return reply{affected: 1, last: 1}
		case strings.HasPrefix(query, isRecord) && args[0].Value == "interlock.owner":
			return reply{rows: craneRow([]string{"alive", "dead"}[sent-1], 1, 1, before)}
		case strings.HasPrefix(query, isRecord):
			return reply{rows: craneRow("idle", 4, 2, before)}
		}
		return reply{affected: 1}
	})
	err := store.Commit(t.Context(), c)
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	require.NotErrorIs(t, err, lifecycle.ErrStale)
	require.ErrorContains(t, err, `owner "alpha" of epoch 0 is not alive`)
	require.Equal(t, 2, sent)
}

// A MetadataOnly change has no history row. The row of another change proves that their commit was
// written. Without one the outcome is unknown.
func TestLostMetadataOnly(t *testing.T) {
	metadata := moved()
	metadata.Changes[0].MetadataOnly, metadata.Changes[0].To.State = true, "idle"
	both := moved()
	both.Changes[0].To.ID = "b"
	both.Changes = append(both.Changes, metadata.Changes[0])
	for name, x := range map[string]struct {
		c       *lifecycle.Commit
		history reply
		is      error
	}{
		"alone":                          {metadata, reply{}, lifecycle.ErrUnknownOutcome},
		"the other one has its row":      {both, historyRow(both.Token), nil},
		"the other one has no row":       {both, reply{}, lifecycle.ErrUnknownOutcome},
		"another commit is at its place": {both, historyRow(lifecycle.NewToken()), lifecycle.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			store, _, _ := opened(t, MySQL, nil, answers(map[string][]reply{
				"COMMIT": {cut}, isUpdate: {done}, isRecord: {{rows: craneRow("idle", 5, 2, x.c.Token)}}, isHistory: {x.history},
			}))
			require.ErrorIs(t, store.Commit(t.Context(), x.c), x.is)
		})
	}
}

// Commit is retried while other transactions are in the way, for Config.RetryFor.
func TestRetryFor(t *testing.T) {
	for _, err := range []error{
		&numberError{Number: 1213}, &numberError{Number: 1205}, &numberError{Number: 1020},
		codeError(5), codeError(517), stateError("40001"), stateError("40P01"),
	} {
		t.Run(err.Error(), func(t *testing.T) {
			by := func() map[string][]reply { return map[string][]reply{isUpdate: {{err: err}, {err: err}, done}} }
			store, f, _ := opened(t, MySQL, nil, answers(by()))
			require.NoError(t, store.Commit(t.Context(), moved()))
			require.Equal(t, []string{
				"BEGIN", isUpdate + " SET", "ROLLBACK", "BEGIN", isUpdate + " SET", "ROLLBACK",
				"BEGIN", isUpdate + " SET", isRow, "COMMIT",
			}, short(f.statements()))

			store, f, _ = opened(t, MySQL, &Config{RetryFor: -1}, answers(by()))
			require.ErrorIs(t, store.Commit(t.Context(), moved()), err)
			require.Equal(t, []string{"BEGIN", isUpdate + " SET", "ROLLBACK"}, short(f.statements()))
		})
	}
}

// Reads and Discard are retried too, also after broken connections of the pool.
func TestReadsAreRetried(t *testing.T) {
	for _, err := range []error{codeError(5), io.ErrUnexpectedEOF} {
		t.Run(err.Error(), func(t *testing.T) {
			failures := 0
			store, _, _ := opened(t, SQLite, nil, func(query string, _ []driver.NamedValue) reply {
				if failures++; failures%3 != 0 {
					return reply{err: err}
				}
				return reply{}
			})
			_, got := store.Get(t.Context(), crane)
			require.NoError(t, got)
			_, got = store.List(t.Context(), lifecycle.Query{Machine: "crane", Limit: 1})
			require.NoError(t, got)
			_, got = store.History(t.Context(), crane, 0, 1)
			require.NoError(t, got)
			_, got = store.Messages(t.Context(), 1)
			require.NoError(t, got)
			require.NoError(t, store.Discard(t.Context(), 1, 2))
			require.Equal(t, 15, failures)
		})
	}
	store, f, _ := opened(t, SQLite, nil, func(string, []driver.NamedValue) reply { return reply{err: codeError(11)} })
	_, err := store.Get(t.Context(), crane)
	require.ErrorIs(t, err, codeError(11))
	require.Len(t, f.statements(), 1, "the error is final")
	_, err = store.List(t.Context(), lifecycle.Query{Machine: "crane"})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Empty(t, f.statements())
}

// The words of the engine about a value that a check refuses are for the log, not for clients.
func TestWordsOfTheEngine(t *testing.T) {
	refused := reply{err: &numberError{Number: 3819, Message: "Check constraint 'secret' is violated."}}
	store, _, _ := opened(t, MySQL, nil, answers(map[string][]reply{isUpdate: {refused}}))
	err := store.Commit(t.Context(), moved())
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "secret")
	require.Equal(t, "invalid request", lifecycle.Problem(err).Detail)
}

// A row that cannot be read, and a transaction of the caller that has ended, stay as they
// are: the error is no outage, and nothing is tried again.
func TestFaultsThatStay(t *testing.T) {
	bad := craneRow("idle", 4, 2, before)
	bad[0][5] = "four"
	store, f, db := opened(t, MySQL, nil, answers(map[string][]reply{isRecord: {{rows: bad}}, isUpdate: {{affected: 0}}}))
	_, err := store.Get(t.Context(), crane)
	require.ErrorContains(t, err, "four")
	require.NotErrorIs(t, err, lifecycle.ErrUnavailable)
	require.Len(t, f.statements(), 1)
	err = store.Commit(t.Context(), moved())
	require.ErrorContains(t, err, "four")
	require.NotErrorIs(t, err, lifecycle.ErrUnavailable)
	require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)

	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	for _, err := range []error{
		store.WithTx(tx).Commit(t.Context(), moved()),
		func() error { _, err := store.WithTx(tx).Get(t.Context(), crane); return err }(),
	} {
		require.ErrorIs(t, err, sql.ErrTxDone)
		require.NotErrorIs(t, err, lifecycle.ErrUnavailable)
	}
}

func short(log []string) []string {
	for i, q := range log {
		if strings.HasPrefix(q, isRow) {
			log[i] = isRow
		}
	}
	return log
}

// A change that matches two rows is an error, and is rolled back.
func TestTwoRows(t *testing.T) {
	store, f, _ := opened(t, MySQL, nil, answers(map[string][]reply{isUpdate: {{affected: 2, last: 1}}}))
	require.ErrorContains(t, store.Commit(t.Context(), moved()), "more rows than one")
	require.Equal(t, []string{"BEGIN", isUpdate + " SET", "ROLLBACK"}, f.statements())
}

// In the caller's transaction nothing is retried, and the store does not end it.
func TestTxIsTheCallers(t *testing.T) {
	deadlock := &numberError{Number: 1213}
	store, f, db := opened(t, MySQL, nil, answers(map[string][]reply{isUpdate: {{err: deadlock}}}))
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	in := store.WithTx(tx)
	require.Equal(t, store.Capabilities(), in.Capabilities())
	err = in.Commit(t.Context(), moved())
	require.ErrorIs(t, err, ErrRollback)
	require.ErrorIs(t, err, deadlock)
	require.Equal(t, []string{"BEGIN", "SAVEPOINT interlock_commit", isUpdate + " SET"}, f.statements())
	require.NoError(t, tx.Rollback())

	tx, err = db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	f.answer = answers(map[string][]reply{isRecord: {{}}, isHistory: {{}}, "SELECT number": {{}}})
	in = store.WithTx(tx)
	_, err = in.Get(t.Context(), crane)
	require.NoError(t, err)
	_, err = in.List(t.Context(), lifecycle.Query{Machine: "crane", Limit: 1})
	require.NoError(t, err)
	_, err = in.History(t.Context(), crane, 0, 1)
	require.NoError(t, err)
	_, err = in.Messages(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, in.Discard(t.Context(), 1))
	require.NoError(t, tx.Rollback())
	require.NoError(t, store.Close())
	require.ErrorIs(t, in.Commit(t.Context(), moved()), lifecycle.ErrClosed)
}

// In the caller's transaction a refused commit of several objects takes back what it
// has written.
func TestTxKeepsNothingOfARefusedCommit(t *testing.T) {
	store, f, db := opened(t, MySQL, nil, answers(map[string][]reply{
		isUpdate: {done, {affected: 0}}, isRecord: {{rows: craneRow("idle", 4, 2, before)}, {rows: craneRow("broken", 5, 3, lifecycle.Token{9})}},
		isHistory: {historyRow(lifecycle.Token{9})},
	}))
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	c := moved()
	c.Changes = append(c.Changes, moved().Changes...)
	c.Changes[1].To.ID = "b"
	var conflict *lifecycle.ConflictError
	require.ErrorAs(t, store.WithTx(tx).Commit(t.Context(), c), &conflict)
	require.Equal(t, 1, conflict.Change)
	require.Equal(t, []string{
		"BEGIN", "SAVEPOINT interlock_commit", isUpdate + " SET", isRow, isUpdate + " SET",
		"ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT interlock_commit",
	}, short(f.statements())[:7])
	require.NoError(t, store.WithTx(tx).Close())
}

// The savepoint of a commit in the caller's transaction is released, because PostgreSQL keeps
// every one.
func TestTxKeepsNoSavepoint(t *testing.T) {
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		t.Run(d.String(), func(t *testing.T) {
			row := reply{rows: [][]driver.Value{{int64(1_000_000)}}, affected: 1, last: 1_000_000}
			store, f, db := opened(t, d, nil, func(string, []driver.NamedValue) reply { return row })
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback()) }()
			c := moved()
			c.Messages = []lifecycle.Message{{Topic: "moved"}}
			require.NoError(t, store.WithTx(tx).Commit(t.Context(), c))
			log := f.statements()
			require.Equal(t, "SAVEPOINT interlock_commit", log[1])
			require.Equal(t, "RELEASE SAVEPOINT interlock_commit", log[len(log)-1])
		})
	}
}

// A commit that lacks resources leaves nothing in the transaction of the caller. If the engine has
// ended the transaction, and its savepoint with it, the outage is the error, and not the missing
// savepoint.
func TestTxForWantOfResources(t *testing.T) {
	full := &numberError{Number: 1206} // locks
	for name, back := range map[string]reply{"the transaction goes on": {}, "the transaction has ended": {err: &numberError{Number: 1305}}} {
		t.Run(name, func(t *testing.T) {
			store, f, db := opened(t, MySQL, nil, answers(map[string][]reply{isUpdate: {{err: full}}, "ROLLBACK TO SAVEPOINT": {back}}))
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback()) }()
			c := moved()
			c.Messages = []lifecycle.Message{{Topic: "moved"}}
			err = store.WithTx(tx).Commit(t.Context(), c)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
			require.ErrorIs(t, err, full)
			require.Equal(t, []string{
				"BEGIN", "SAVEPOINT interlock_commit", isUpdate + " SET", "ROLLBACK TO SAVEPOINT",
			}, short(f.statements())[:4])
		})
	}
}

// If the engine may have ended the transaction of the caller, the view sends no further statement:
// MySQL and SQLite would commit each by itself.
func TestTxThatHasEnded(t *testing.T) {
	deadlock := reply{err: &numberError{Number: 1213}}
	for name, c := range map[string]struct {
		dialect Dialect
		replies map[string][]reply
	}{
		"by a deadlock":             {MySQL, map[string][]reply{isUpdate: {deadlock}}},
		"by a deadlock of a search": {MySQL, map[string][]reply{isUpdate: {{affected: 0}}, isRecord: {deadlock}}},
		"by a full table of locks":  {MySQL, map[string][]reply{isUpdate: {{affected: 0}}, isRecord: {{err: &numberError{Number: 1206}}}}},
		"by a search that fails":    {SQLite, map[string][]reply{isUpdate: {{affected: 0}}, isRecord: {{err: codeError(10)}}}},
		"by an interruption":        {SQLite, map[string][]reply{isUpdate: {{err: codeError(9)}}}},
		"by a trigger":              {SQLite, map[string][]reply{isUpdate: {{err: codeError(1811)}}, "ROLLBACK TO": {{err: codeError(1)}}}},
		"by a full disk":            {SQLite, map[string][]reply{isUpdate: {{err: codeError(13)}}, "ROLLBACK TO": {{err: codeError(1)}}}},
		"by a statement before":     {MySQL, map[string][]reply{isUpdate: {done}, "RELEASE": {{err: &numberError{Number: 1305}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			store, f, db := opened(t, c.dialect, nil, answers(c.replies))
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback()) }()
			in := store.WithTx(tx)
			require.Error(t, in.Commit(t.Context(), moved()))
			f.statements()
			require.ErrorIs(t, in.Commit(t.Context(), moved()), ErrRollback)
			require.ErrorIs(t, in.Discard(t.Context(), 1), ErrRollback)
			_, err = in.Get(t.Context(), crane)
			require.ErrorIs(t, err, ErrRollback)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
			require.Empty(t, f.statements())
		})
	}
}

// Commit returns the cause of a context that ends during a retry or before the call.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the cause")
	store, f, _ := opened(t, SQLite, nil, func(query string, _ []driver.NamedValue) reply {
		if strings.HasPrefix(query, "UPDATE") {
			cancel(cause)
			return reply{err: codeError(5)}
		}
		return reply{}
	})
	err := store.Commit(ctx, moved())
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.Canceled)
	f.statements()
	require.ErrorIs(t, store.Commit(ctx, moved()), cause)
	for _, q := range f.statements() { // database/sql may still roll back
		require.Equal(t, "ROLLBACK", q)
	}
}

// Names that the engines would not keep alike are refused before any statement.
func TestNames(t *testing.T) {
	store, f, _ := opened(t, Postgres, nil, nil)
	long := strings.Repeat("x", 256)
	for name, change := range map[string]func(*lifecycle.StoredChange){
		"no id":             func(ch *lifecycle.StoredChange) { ch.To.ID = "" },
		"long id":           func(ch *lifecycle.StoredChange) { ch.To.ID = long },
		"id with NUL":       func(ch *lifecycle.StoredChange) { ch.To.ID = "a\x00" },
		"machine not UTF-8": func(ch *lifecycle.StoredChange) { ch.To.Machine = "\xff" },
		"long state":        func(ch *lifecycle.StoredChange) { ch.To.State = long },
		"from with NUL":     func(ch *lifecycle.StoredChange) { ch.From = "\x00" },
		"long owner":        func(ch *lifecycle.StoredChange) { ch.To.Owner = long },
		"long event":        func(ch *lifecycle.StoredChange) { ch.To.Event = strings.Repeat("x", 1024) },
		"large epoch":       func(ch *lifecycle.StoredChange) { ch.To.Epoch = 1 << 63 },
	} {
		t.Run(name, func(t *testing.T) {
			c := moved()
			change(&c.Changes[0])
			require.ErrorIs(t, store.Commit(t.Context(), c), lifecycle.ErrInvalid)
		})
	}
	_, err := store.Get(t.Context(), lifecycle.Key{Machine: "crane", ID: long})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Empty(t, f.statements())
}
