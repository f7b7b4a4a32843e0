package sqlstore

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func TestRevision(t *testing.T) {
	own := SQLite.own("", Version)
	counted := &layout{objects: table{existing: true, column: make([]column, values)}}
	tokens := &layout{objects: table{existing: true, column: own.objects.column}}
	token := lifecycle.Token{1, 2, 0xfe}
	for _, x := range []struct {
		name   string
		l      *layout
		number uint64
		token  []byte
		is     lifecycle.Revision
	}{
		{"own", own, 25, token[:], "25-0102fe00000000000000000000000000"},
		{"own, without a commit", own, 0, make([]byte, 16), "0"},
		{"own, without a commit since a restore", own, 1_000_000, make([]byte, 16), "1000000"},
		{"existing, without tokens", counted, 25, nil, "25"},
		{"existing", tokens, math.MaxInt64 - 1, token[:], "9223372036854775806-0102fe00000000000000000000000000"},
		{"existing, written by another program", tokens, 1, nil, "1"},
		{"existing, with a token of another length", tokens, 0, []byte{7}, "0-07"},
	} {
		t.Run(x.name, func(t *testing.T) {
			require.Equal(t, x.is, x.l.revision(x.number, x.token))
			number, token := x.l.parse(x.is)
			require.Equal(t, x.number, number)
			if !strings.Contains(string(x.is), "-") {
				x.token = nil
			}
			require.Equal(t, x.token, token)
		})
	}
	for _, r := range []lifecycle.Revision{
		"", "-", "x", "-1", "+1", "01", " 1", "1-", "1-0", "1-zz", "1-FE", "1-fe-", "0-00", "1-00000000000000000000000000000000", "9223372036854775807", "9223372036854775808",
	} {
		number, _ := own.parse(r)
		require.EqualValues(t, noNumber, number, r)
	}
	number, _ := counted.parse("1-fe")
	require.EqualValues(t, noNumber, number, "of another table")
}
