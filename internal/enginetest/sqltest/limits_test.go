package sqltest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// Three reports with reasons of 20 MiB do not make the file of a database larger. They
// once grew it to 80 MiB.
func TestReasonsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if e.name != "sqlite" {
			return
		}
		s := newStores(t, e, sqlstore.Config{})
		m := manage(s.new(t))
		create(t, m, "a")
		begun := fire(t, m, "a", pay, customer)
		for range 3 {
			_, err := m.Report(t.Context(), "a", begun.Operation, settled, bank, &lifecycle.Change[string]{Reason: strings.Repeat("x", 20<<20)})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		}
		var size int64
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(s.way.file(t) + suffix); err == nil {
				size += info.Size()
			}
		}
		require.Less(t, size, int64(8<<20))
	})
}
