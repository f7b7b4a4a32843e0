package sqltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// A trigger of the caller on the store's own table, for an audit or a tool that copies the table,
// changes no result of a commit.
func TestTriggerOfTheCaller(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		create(t, manage(store), "b")
		exec(t, db, "CREATE TABLE audit (revision bigint NOT NULL)")
		for _, on := range []string{"INSERT", "UPDATE"} {
			body := map[string]string{
				"postgres": "EXECUTE FUNCTION audited()", "mysql": "INSERT INTO audit VALUES (NEW.revision)",
				"sqlite": "BEGIN INSERT INTO audit VALUES (NEW.revision); END",
			}[e.name]
			if e.name == "postgres" {
				exec(t, db, "CREATE OR REPLACE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql AS"+
					" $$ BEGIN INSERT INTO audit VALUES (NEW.revision); RETURN NULL; END $$")
			}
			exec(t, db, "CREATE TRIGGER audit_"+on+" AFTER "+on+" ON interlock_objects FOR EACH ROW "+body)
		}
		m := manage(store)
		check := func(r record, err error) {
			t.Helper()
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), r.ChangedAt, time.Minute)
			now, err := m.Get(t.Context(), r.ID)
			if r.State == none {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
			} else {
				require.NoError(t, err)
				require.Equal(t, r, now)
			}
			rows, err := m.History(t.Context(), r.ID, 0, 0)
			require.NoError(t, err)
			require.Equal(t, r.ChangedAt, rows[len(rows)-1].At)
		}
		check(m.Create(t.Context(), "a", place, customer, "one", nil))
		check(m.Fire(t.Context(), "a", pay, customer, nil)) // with a deadline
		check(m.Fire(t.Context(), "a", settled, bank, nil))
		check(m.Fire(t.Context(), "a", drop, customer, nil))
		check(m.Create(t.Context(), "a", place, customer, "two", nil))

		// Metadata, with and without a deadline, beside a change of another object.
		for _, timeout := range []time.Duration{0, time.Hour} {
			metadata := lifecycle.StoredChange{MetadataOnly: true, To: get(t, store, orderA), Timeout: timeout}
			metadata.Expect, metadata.From = metadata.To.Revision, metadata.To.State
			c := next(get(t, store, lifecycle.Key{Machine: "order", ID: "b"}), 0)
			c.Changes = append(c.Changes, metadata)
			require.NoError(t, store.Commit(t.Context(), c))
			for _, ch := range c.Changes {
				require.Equal(t, get(t, store, ch.To.Key), ch.To)
			}
		}
		owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
		require.NoError(t, err)
		require.NoError(t, owner.Heartbeat(t.Context()))
		n := 0
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM audit").Scan(&n))
		require.Greater(t, n, 9)
	})
}
