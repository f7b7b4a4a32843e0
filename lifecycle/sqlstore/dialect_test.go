package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func TestClassify(t *testing.T) {
	number := func(n uint16) error { return &numberError{Number: n} }
	for _, c := range []struct {
		err  error
		want class
	}{
		{io.ErrUnexpectedEOF, noAnswer},
		{errors.Join(errors.New("traced"), fmt.Errorf("statement 3: %w", number(1062))), duplicate},
		{number(1180), noAnswer}, // of COMMIT
		{driver.ErrBadConn, noAnswer},
		{&net.OpError{Op: "read", Err: io.EOF}, noAnswer},
		{stateError("40001"), busy},
		{stateError("40P01"), busy},
		{stateError("23505"), duplicate},
		{stateError("23514"), unfit},
		{stateError("44000"), unfit}, // the check of a view
		{stateError("428C9"), unfit}, // a generated column
		{stateError("57P01"), noAnswer},
		{stateError("25P03"), noAnswer}, // idle in the transaction for too long
		{stateError("25P04"), noAnswer}, // the transaction took too long
		{stateError("08006"), noAnswer},
		{stateError("57014"), unable},
		{stateError("53100"), unable}, // the disk is full
		{stateError("58030"), unable}, // of input or output
		{&severeError{stateError: "53100", Severity: "ERROR"}, unable},
		{&severeError{stateError: "53100", Severity: "PANIC"}, noAnswer}, // perhaps of COMMIT
		{&severeError{stateError: "58030", Severity: "PANIK", SeverityUnlocalized: "PANIC"}, noAnswer},
		{number(1213), busy},
		{number(1205), busy},
		{number(1020), busy},
		{number(1062), duplicate},
		{number(1053), noAnswer},
		{number(1927), noAnswer},
		{number(2013), noAnswer}, // a proxy has lost the server, perhaps in COMMIT
		{number(1026), noAnswer}, // an error of the disk, perhaps in COMMIT
		{number(1615), busy},
		{number(1064), refused},
		{number(1369), unfit}, // the check of a view
		{number(1526), unfit}, // no partition has the value
		{number(1906), unfit}, // a generated column
		{codeError(5), busy},
		{codeError(517), busy},
		{codeError(6), busy},
		{codeError(1555), duplicate},
		{codeError(2067), duplicate},
		{codeError(19), unfit},
		{codeError(10), noAnswer},
		{codeError(1), unknownName},
		{extendedError{Code: 5, ExtendedCode: 517}, busy},
		{extendedError{Code: 19, ExtendedCode: 2067}, duplicate},
		{stateError("53300"), unable},   // too many connections
		{stateError("57P03"), noAnswer}, // the server starts
		{stateError("25006"), unable},   // a standby
		{stateError("0A000"), refused},
		{&routineError{stateError("0A000"), "RevalidateCachedQuery"}, busy}, // a plan of before a change of the table
		{&routineError{stateError("0A000"), "rewriteRuleAction"}, refused},
		{stateError("42P01"), unknownName},
		{stateError("28P01"), refused}, // wrong password
		{number(1114), unable},         // table full
		{number(1290), unable},         // read-only
		{number(1412), busy},           // the table was changed
		{number(1461), unable},         // too many prepared statements on the server
		{number(9001), noAnswer},       // a proxy does not reach the server
		{number(1045), refused},
		{codeError(8), unable},  // read-only
		{codeError(13), unable}, // full
		{codeError(14), unable}, // cannot open the file
		{lifecycle.ErrForeign, refused},
		{ErrSchema, refused},
		{&lifecycle.RepeatedError{}, refused},
		{errLocked, unable}, // a minute; before, Migrate waited four times
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			require.Equal(t, c.want, classify(c.err))
			require.Equal(t, c.want, classify(fmt.Errorf("wrapped: %w", c.err)))
		})
	}
}

// A caller gets one sentinel for each reaction that it can have, with the driver's error.
func TestReactions(t *testing.T) {
	sentinels := []error{lifecycle.ErrUnavailable, lifecycle.ErrPrecondition, lifecycle.ErrInvalid}
	for _, c := range []struct {
		err, want error
	}{
		{io.ErrUnexpectedEOF, lifecycle.ErrUnavailable},  // noAnswer
		{stateError("40001"), lifecycle.ErrUnavailable},  // busy
		{stateError("53100"), lifecycle.ErrUnavailable},  // unable
		{stateError("23505"), lifecycle.ErrPrecondition}, // duplicate
		{stateError("23503"), lifecycle.ErrPrecondition}, // otherRow
		{stateError("23514"), lifecycle.ErrInvalid},      // unfit
		{stateError("28P01"), nil},                       // refused
		{stateError("42P01"), nil},                       // unknownName
		{lifecycle.ErrForeign, nil},
		{ErrSchema, nil},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			err := failed(t.Context(), fmt.Errorf("wrapped: %w", c.err))
			require.ErrorIs(t, err, c.err)
			for _, sentinel := range sentinels {
				require.Equal(t, sentinel == c.want, errors.Is(err, sentinel), sentinel)
			}
		})
	}
}

func TestIdentifier(t *testing.T) {
	for _, ok := range []string{"a", "_", "A1_b", strings.Repeat("x", 63)} {
		require.NoError(t, identifier(ok), ok)
	}
	for _, bad := range []string{"", "1a", "a b", "a-b", "a.b", `a"`, "a`", "a'", "a;", "a\x00", "é", "--", strings.Repeat("x", 64)} {
		require.ErrorIs(t, identifier(bad), lifecycle.ErrInvalid, bad)
	}
}

// Statements have placeholders for all data.
func TestStatementsHaveNoValues(t *testing.T) {
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		for _, st := range d.compile(d.own("p_", Version)).prepared() {
			places := strings.Count(st.text, "?")
			if d.numbered {
				places = strings.Count(st.text, "$")
			}
			require.Equal(t, len(st.args), places, st.text)
		}
	}
}

func TestMigrateIsAllOrNothing(t *testing.T) {
	require.Equal(t, "postgres", Postgres.String())
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		t.Run(d.String(), func(t *testing.T) {
			var broken bool
			f := &fake{answer: func(query string, _ []driver.NamedValue) reply {
				if broken && strings.Contains(query, "app_history") {
					return reply{err: stateError("42501")}
				}
				return reply{}
			}}
			db := sql.OpenDB(f)
			defer db.Close()
			config := &Config{Prefix: "app_"}
			require.NoError(t, Migrate(t.Context(), db, d, config))
			log := f.statements()
			require.True(t, strings.HasPrefix(d.endMigration, log[len(log)-1]), log)
			broken = true
			require.ErrorIs(t, Migrate(t.Context(), db, d, config), stateError("42501"))
			log = f.statements()
			require.True(t, strings.HasPrefix(d.undoMigration, log[len(log)-1]), log)

			broken = false
			var reports []string
			config.Progress = func(what string, done, total int) {
				reports = append(reports, fmt.Sprintf("%s: %d of %d", what, done, total))
				if done == Version-1 {
					panic("no more")
				}
			}
			require.PanicsWithValue(t, "no more", func() { _ = Migrate(t.Context(), db, d, config) })
			var steps []string
			for done := range Version {
				steps = append(steps, fmt.Sprintf("migrate tables app_*: %d of %d", done, Version))
			}
			require.Equal(t, steps, reports)
			log = f.statements()
			require.True(t, strings.HasPrefix(d.undoMigration, log[len(log)-1]), log)
		})
	}
}

// A migration that SQLite has undone itself leaves the connection in its pool: a database in
// memory would end with it. Any other connection that cannot be cleaned is dropped.
func TestMigrateKeepsTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		undo error
		open int
	}{
		"undone":            {nil, 1},
		"no transaction":    {codeError(1), 1},
		"a lost connection": {io.ErrUnexpectedEOF, 0},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&fake{answer: func(query string, _ []driver.NamedValue) reply {
				switch {
				case query == "ROLLBACK":
					return reply{err: c.undo}
				case strings.Contains(query, "interlock_history"):
					return reply{err: codeError(9)} // interrupted
				}
				return reply{}
			}})
			defer db.Close()
			require.ErrorIs(t, Migrate(t.Context(), db, SQLite, nil), codeError(9))
			require.Equal(t, c.open, db.Stats().OpenConnections)
		})
	}
}

func TestOpenNeedsADialect(t *testing.T) {
	db := sql.OpenDB(&fake{answer: func(string, []driver.NamedValue) reply { return reply{} }})
	defer db.Close()
	_, err := Open(t.Context(), db, Dialect{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.Equal(t, "none", Dialect{}.String())
	_, err = Open(t.Context(), nil, SQLite, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorIs(t, Migrate(t.Context(), nil, SQLite, nil), lifecycle.ErrInvalid)
}
