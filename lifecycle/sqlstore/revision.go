package sqlstore

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// revision is that of a record: how many commits have written the row, and the
// token of the last of them. The number alone would repeat. Engines may show a
// commit before it is on disk (InnoDB always does, PostgreSQL without
// synchronous_commit): when such an engine is killed, a record that somebody has
// read may be gone, and another commit then makes one of the same number.
//
//	revision = number                   no token is kept, or nobody has written it yet
//	         | number "-" token in hex
func (l *layout) revision(number int64, token []byte) lifecycle.Revision {
	if l.column[vToken] == "" || len(token) == 0 || number == 0 && !l.foreign {
		return lifecycle.Revision(strconv.FormatInt(number, 10))
	}
	var room [20 + 1 + 2*len(lifecycle.Token{})]byte
	text := strconv.AppendInt(room[:0], number, 10)
	text = append(text, '-')
	return lifecycle.Revision(hex.AppendEncode(text, token))
}

// parse is the inverse of revision; ok is false for what is none of this store's.
func (l *layout) parse(r lifecycle.Revision) (number int64, token []byte, ok bool) {
	digits, rest, _ := strings.Cut(string(r), "-")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number < 0 || number == maxNumber {
		return 0, nil, false
	}
	if rest != "" {
		if token, err = hex.DecodeString(rest); err != nil {
			return 0, nil, false
		}
	}
	return number, token, l.revision(number, token) == r
}

// number is how many commits a revision counts, 0 if it is none of this store's.
func (l *layout) number(r lifecycle.Revision) int64 {
	number, _, _ := l.parse(r)
	return number
}

// noToken stands in the condition for a row that nobody has written: the bytes
// of a ghost, and in a table of the user's, where such rows have NULL or
// nothing, what no token is.
func (l *layout) noToken() []byte {
	if l.foreign {
		return []byte{0}
	}
	return make([]byte, len(lifecycle.Token{}))
}

// absent is the revision of an object that no commit has written.
const absent lifecycle.Revision = "0"

// stateRevision is the revision of a record in a table that keeps none: it is no
// more than the state.
func stateRevision(state string) lifecycle.Revision { return lifecycle.Revision("state " + state) }
