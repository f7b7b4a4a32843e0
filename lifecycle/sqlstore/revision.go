package sqlstore

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// revision returns the revision of a record: the number of commits that have
// written the row, and the token of the last one. The number alone would repeat:
// InnoDB, and PostgreSQL without synchronous_commit, show a commit before it is on
// disk. If such an engine is killed, a record that was read may be lost, and another
// commit then writes a record with the same number.
//
//	revision = number                   the table keeps no token, or no commit has written one
//	         | number "-" token in hex
func (l *layout) revision(number int64, token []byte) lifecycle.Revision {
	if l.column[vToken] == "" || len(token) == 0 || number == 0 && !l.existing {
		return lifecycle.Revision(strconv.FormatInt(number, 10))
	}
	var room [20 + 1 + 2*len(lifecycle.Token{})]byte
	text := strconv.AppendInt(room[:0], number, 10)
	text = append(text, '-')
	return lifecycle.Revision(hex.AppendEncode(text, token))
}

// parse is the inverse of revision. For a revision of another store ok is false, and
// the number is one that no row has.
func (l *layout) parse(r lifecycle.Revision) (number int64, token []byte, ok bool) {
	digits, rest, _ := strings.Cut(string(r), "-")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err == nil && rest != "" {
		token, err = hex.DecodeString(rest)
	}
	if err != nil || number < 0 || number == maxNumber || l.revision(number, token) != r {
		return noNumber, nil, false
	}
	return number, token, true
}

// noNumber is the number of no row.
const noNumber = -1

// noToken is the token of a row that no commit has written: zeros in the store's own
// table; in an existing table, where such a row has NULL or no bytes, a value that no
// token equals.
func (l *layout) noToken() []byte {
	if l.existing {
		return []byte{0}
	}
	return make([]byte, len(lifecycle.Token{}))
}

// absent is the revision of an object that no commit has written.
const absent lifecycle.Revision = "0"
