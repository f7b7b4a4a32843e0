package lifecycle

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// etag returns the ETag of a record, empty if the object does not exist:
//
//	"sequence-token"    token: the first 8 bytes of ChangeToken in hex
//
// Commits that change metadata only keep both. The token distinguishes two changes with
// one number, after the store has lost its newest commits.
func (r *StoredRecord) etag() string {
	if !r.Exists() {
		return ""
	}
	return `"` + strconv.FormatUint(r.Sequence, 10) + "-" + hex.EncodeToString(r.ChangeToken[:8]) + `"`
}

// matches reports whether a record matches the value of an If-Match header (RFC 9110): a
// list of ETags, or *. Weak ETags match nothing.
func (r *StoredRecord) matches(ifMatch string) bool {
	tag := r.etag()
	if tag == "" || strings.TrimSpace(ifMatch) == "*" {
		return tag != ""
	}
	for one := range strings.SplitSeq(ifMatch, ",") {
		if strings.TrimSpace(one) == tag {
			return true
		}
	}
	return false
}

// checkIfMatch refuses what is not the value of an If-Match header.
func checkIfMatch(ifMatch string) error {
	for one := range strings.SplitSeq(ifMatch, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		quoted := len(one) >= 2 && one[0] == '"' && one[len(one)-1] == '"'
		if ifMatch != "" && strings.TrimSpace(ifMatch) != "*" && (!quoted || strings.Contains(one[1:len(one)-1], `"`)) {
			return fmt.Errorf("%w: If-Match %q is neither * nor a list of ETags in double quotes", ErrInvalid, shown(ifMatch))
		}
	}
	return nil
}
