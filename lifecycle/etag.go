package lifecycle

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
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
	var space [40]byte
	tag := strconv.AppendUint(append(space[:0], '"'), r.Sequence, 10)
	tag = hex.AppendEncode(append(tag, '-'), r.ChangeToken[:8])
	return string(append(tag, '"'))
}

// anETag is a pattern of an ETag (RFC 9110). It may contain a comma.
const anETag = `(?:W/)?"[^"]*"`

var (
	eTags = regexp.MustCompile(anETag)
	// eTagList is a list of ETags. A list may have empty elements.
	eTagList = regexp.MustCompile(`^[ \t,]*` + anETag + `(?:[ \t]*,[ \t,]*` + anETag + `)*[ \t,]*$`)
)

// matches reports whether a record matches the value of an If-Match header (RFC 9110): a
// list of ETags, or *. Weak ETags match nothing.
func (r *StoredRecord) matches(ifMatch string) bool {
	tag := r.etag()
	if tag == "" || strings.TrimSpace(ifMatch) == "*" {
		return tag != ""
	}
	return slices.Contains(eTags.FindAllString(ifMatch, -1), tag)
}

// checkIfMatch refuses what is not the value of an If-Match header.
func checkIfMatch(ifMatch string) error {
	if ifMatch == "" || strings.TrimSpace(ifMatch) == "*" || eTagList.MatchString(ifMatch) {
		return nil
	}
	return fmt.Errorf("%w: If-Match %q is neither * nor a list of ETags in double quotes", ErrInvalid, shown(ifMatch))
}
