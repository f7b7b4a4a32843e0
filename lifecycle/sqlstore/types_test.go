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
	require.EqualError(t, err, `"ON" is not a value of vm_status`)
}

// A value that is not of its type stays visible, and no commit overwrites it: SQLite keeps
// any text in an integer column.
func TestUnreadableField(t *testing.T) {
	l := &layout{objects: table{column: append(make([]column, values),
		column{name: "cpus", field: "cpus", typ: &Integer}, column{name: "spot", field: "spot", typ: &Bool}, column{name: "region", field: "region", typ: &Text})}}
	vms, n := &l.objects, len(l.objects.column)
	vms.column[vPayload].name = "spec"
	rest := `{"zone":"a"}`
	join := func(list ...string) []byte {
		r := &row{fields: make([]sql.NullString, n-int(values))}
		r.Payload = []byte(rest)
		for i, text := range list {
			r.fields[i] = sql.NullString{String: text, Valid: true}
		}
		vms.join(r)
		return r.Payload
	}
	write := func(payload string) error {
		r := &row{fields: make([]sql.NullString, n-int(values))}
		r.Payload = []byte(payload)
		require.NoError(t, vms.split(r))
		b := &builder{engine: sqlite, layout: l}
		for v := values; v < value(n); v++ {
			b.placeIn(vms, v, param{v: v})
		}
		_, err := b.statement("").bind(r)
		return err
	}
	payload := join("four", "maybe", "eu")
	require.JSONEq(t, `{"zone": "a", "cpus": "four", "spot": "maybe", "region": "eu"}`, string(payload))
	require.ErrorIs(t, write(string(payload)), lifecycle.ErrInvalid)

	// PostgreSQL refuses text with NUL, so it is refused for every engine.
	err := write(`{"region": "e\u0000u"}`)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, `field "region" of the payload: NUL in "e\x00u"`)
	require.JSONEq(t, `{"zone": "a", "cpus": 4, "spot": true}`, string(join("4", "1")))

	// Another program may write null where the store writes no value.
	for _, rest = range []string{"null", " null\n"} {
		require.JSONEq(t, `{"cpus": 4}`, string(join("4")), rest)
		require.Empty(t, join(), rest)
	}
}
