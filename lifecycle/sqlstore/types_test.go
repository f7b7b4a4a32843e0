package sqlstore

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Two states with one number could not be distinguished when they are read.
func TestCodesAreUnique(t *testing.T) {
	require.PanicsWithValue(t, `sqlstore: Codes: "open" and "paid" have the code 1`, func() {
		Codes(map[string]int64{"open": 1, "paid": 1, "none": 0})
	})
}

// An enum has its values only, and MySQL gets them quoted.
func TestEnum(t *testing.T) {
	status := Enum("vm_status", "on", "it's off")
	require.Equal(t, []string{"vm_status", "enum('on', 'it''s off')", "TEXT"}, []string{status.sql(postgres), status.sql(mysql), status.sql(sqlite)})
	_, err := status.Write("ON")
	require.EqualError(t, err, `"ON" is no value of vm_status`)
}

// A value that is not of its type stays visible, and no commit overwrites it: SQLite keeps
// any text in an integer column.
func TestUnreadableField(t *testing.T) {
	vms := table{fields: []field{{name: "cpus", typ: &Integer}, {name: "spot", typ: &Bool}, {name: "region", typ: &Text}}}
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }

	payload := vms.join([]byte(`{"zone":"a"}`), []sql.NullString{text("four"), text("maybe"), text("eu")})
	require.JSONEq(t, `{"zone": "a", "cpus": "four", "spot": "maybe", "region": "eu"}`, string(payload))
	_, _, err := vms.split(payload)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)

	// PostgreSQL refuses text with NUL, so it is refused for every engine.
	_, _, err = vms.split([]byte(`{"region": "e\u0000u"}`))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, `field "region" of the payload: NUL in "e\x00u"`)

	payload = vms.join([]byte(`{"zone":"a"}`), []sql.NullString{text("4"), text("1"), {}})
	require.JSONEq(t, `{"zone": "a", "cpus": 4, "spot": true}`, string(payload))
}
