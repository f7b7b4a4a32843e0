package pgqueuetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection keeps the plans of its statements. Those that it made while the queue was
// nearly empty do not read all of a queue that has become long.
func TestPlans(t *testing.T) {
	_, db := database(t)
	db.SetMaxOpenConns(1)
	add := func(n, delay int) {
		execute(t, db, `SELECT interlock_queue_enqueue(ARRAY['vm' || i % 100], 'work', '', 'aws', 0, 0, 0, 0, $2)
			FROM generate_series(1, $1) i`, n, delay)
	}
	rounds := func() { // each starts an action, puts it back, starts and ends it, and lets another one enter
		for range 10 {
			for _, end := range []string{"interlock_queue_put_back(id, token, 'bad', 0, 0)", "interlock_queue_leave(id, token)", "interlock_queue_leave_all(ARRAY[id], ARRAY[token])"} {
				execute(t, db, "SELECT "+end+" FROM interlock_queue_claim('worker', 60000000, '{aws}', '{100}', 1)")
			}
			execute(t, db, "SELECT interlock_queue_enter_due()")
		}
	}
	read := func() (rows int) {
		execute(t, db, "SELECT pg_stat_force_next_flush()")
		require.NoError(t, db.QueryRow(`SELECT sum(seq_tup_read) FROM pg_stat_user_tables
			WHERE relname IN ('interlock_queue_lanes', 'interlock_queue_places', 'interlock_queue_actions')`).Scan(&rows))
		return rows
	}
	add(20, 0)
	add(20, 1)
	execute(t, db, "VACUUM ANALYZE")
	rounds()
	add(2000, 0)
	add(2000, 1)
	before := read()
	rounds()
	require.Less(t, read()-before, 2000, "rows that were read without an index")
}
