package sqlstore

import (
	"database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Reads of the history fail in an outage; they do not return that there is nothing.
func TestHistoryInAnOutage(t *testing.T) {
	key := lifecycle.Key{Machine: "vm", ID: "1"}
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		t.Run(d.String(), func(t *testing.T) {
			s, _, _ := opened(t, d, nil, func(string, []driver.NamedValue) reply { return reply{err: driver.ErrBadConn} })
			_, err := s.History(t.Context(), key, 0, 10)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
			_, err = s.Requested(t.Context(), key.Machine, "request")
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
			_, err = s.Recent(t.Context(), key.Machine, time.Minute, "", 10)
			require.ErrorIs(t, err, lifecycle.ErrUnavailable)
		})
	}
}
