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

func TestJudge(t *testing.T) {
	number := func(n uint16) error { return &numberError{Number: n} }
	for _, c := range []struct {
		err  error
		want verdict
	}{
		{io.ErrUnexpectedEOF, lostAnswer},
		{errors.Join(errors.New("traced"), fmt.Errorf("statement 3: %w", number(1062))), duplicate},
		{number(1180), lostAnswer}, // of COMMIT
		{driver.ErrBadConn, lostAnswer},
		{&net.OpError{Op: "read", Err: io.EOF}, lostAnswer},
		{stateError("40001"), again},
		{stateError("40P01"), again},
		{stateError("23505"), duplicate},
		{stateError("23514"), refused},
		{stateError("57P01"), lostAnswer},
		{stateError("08006"), lostAnswer},
		{stateError("57014"), refused},
		{number(1213), again},
		{number(1205), again},
		{number(1020), again},
		{number(1062), duplicate},
		{number(1053), lostAnswer},
		{number(1927), lostAnswer},
		{number(1064), refused},
		{codeError(5), again},
		{codeError(517), again},
		{codeError(6), again},
		{codeError(1555), duplicate},
		{codeError(2067), duplicate},
		{codeError(19), refused},
		{codeError(10), lostAnswer},
		{codeError(1), refused},
	} {
		require.Equal(t, c.want, judge(c.err), "%v", c.err)
		require.Equal(t, c.want, judge(fmt.Errorf("wrapped: %w", c.err)), "%v", c.err)
	}
}

func TestIdentifier(t *testing.T) {
	for _, ok := range []string{"a", "_", "A1_b", strings.Repeat("x", 63)} {
		require.NoError(t, identifier(ok), ok)
	}
	for _, bad := range []string{"", "1a", "a b", "a-b", "a.b", `a"`, "a`", "a'", "a;", "a\x00", "é", "--", strings.Repeat("x", 64)} {
		require.ErrorIs(t, identifier(bad), ErrIdentifier, bad)
	}
}

// No statement has anything but words of its own in it: names are quoted,
// values are arguments.
func TestStatementsHaveNoValues(t *testing.T) {
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		for _, history := range []bool{true, false} {
			for _, st := range d.compile(d.own("p_", history)).all() {
				places := strings.Count(st.text, "?")
				if d.numbered {
					places = strings.Count(st.text, "$")
				}
				require.Equal(t, len(st.args), places, st.text)
			}
		}
	}
}

func TestMigrateIsAllOrNothing(t *testing.T) {
	require.Equal(t, "postgres", Postgres.String())
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
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
		log := f.asked()
		require.True(t, strings.HasPrefix(d.end, log[len(log)-1]), log)
		broken = true
		require.ErrorIs(t, Migrate(t.Context(), db, d, config), stateError("42501"))
		log = f.asked()
		require.True(t, strings.HasPrefix(d.undo, log[len(log)-1]), log)
	}
}

func TestOpenNeedsADialect(t *testing.T) {
	db := sql.OpenDB(&fake{answer: func(string, []driver.NamedValue) reply { return reply{} }})
	defer db.Close()
	_, err := Open(t.Context(), db, Dialect{}, nil)
	require.Error(t, err)
	require.Equal(t, "none", Dialect{}.String())
	_, err = Open(t.Context(), nil, SQLite, nil)
	require.Error(t, err)
	require.Error(t, Migrate(t.Context(), nil, SQLite, nil))
	_, err = ExistingTable{Machine: "m", Table: "t", Columns: ColumnMap{ID: "id", State: "state"}}.Open(t.Context(), db, SQLite, nil)
	require.ErrorIs(t, err, ErrSchema)
	_, err = ExistingTable{Machine: "m", Table: "t"}.Open(t.Context(), db, SQLite, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}
