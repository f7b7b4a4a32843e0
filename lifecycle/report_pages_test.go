package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestRepeatedAcrossPages: a report repeats the first event of an operation of many rows,
// which is on another page of the history than the last one. A store that does not keep the
// row any more refuses the report.
func TestRepeatedAcrossPages(t *testing.T) {
	for name, c := range map[string]struct {
		keep, rows int
		want       lifecycle.Verdict
	}{
		"alone on its page":       {-1, 101, lifecycle.Repeated},
		"on a full page":          {-1, 200, lifecycle.Repeated},
		"the page is not kept":    {100, 200, lifecycle.Refused},
		"a part of the page":      {150, 200, lifecycle.Refused},
		"the last row of a store": {1, 101, lifecycle.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			m := lifecycle.Must(sizedVM, &lifecycle.MemoryStore{KeepHistory: c.keep}, nil)
			create(t, m, "a", "create", user, size{})
			for range c.rows - 1 {
				require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "progress", agent, ""))
			}
			require.Equal(t, c.want, report(t, m, "a", 1, "create", user, ""))
		})
	}
}

// TestReportFails: an error before the verdict is returned. The verdict is then Refused.
func TestReportFails(t *testing.T) {
	t.Run("the history of an object at rest cannot be read", func(t *testing.T) {
		m := lifecycle.Must(sizedVM, noHistory{lifecycle.NewMemoryStore()}, nil)
		ready(t, m, "a")
		verdict, err := m.Report(t.Context(), "a", 1, "fail", agent, nil)
		require.ErrorIs(t, err, errHistory)
		require.Equal(t, lifecycle.Refused, verdict)
	})
	t.Run("the edit fails before a guard", func(t *testing.T) {
		m := lifecycle.Must(asking(func(context.Context, *size, *size) error { return nil }), lifecycle.NewMemoryStore(), nil)
		add(t, m, "a", user, size{})
		rec := fire(t, m, "a", "open", user, nil)
		verdict, err := m.Report(t.Context(), "a", rec.Operation, "edit", user, &lifecycle.Change[size]{
			Edit: func(*size) error { return errBoom },
		})
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, lifecycle.Refused, verdict)
	})
}

// TestReportOfUnreadable: a report that the table refuses needs no payload.
func TestReportOfUnreadable(t *testing.T) {
	m, store := vms(t)
	foreignPayload(t, store, "a", "Ready")
	operation := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "a"}).Operation
	require.Equal(t, lifecycle.Refused, report(t, m, "a", operation, "fail", agent, ""))
}
