package lock

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDepth   = 32  // segments
	maxSegment = 255 // bytes
)

// Path names a node of a tree: "/" is the root, and "/a/b" is the node b below a.
// A node does not need to exist to be locked: locking its name covers its
// creation.
//
// [Parse], [Root] and [Path.Child] return only valid paths: up to 32 segments of 1
// to 255 bytes of UTF-8 without control characters, none of them "." or "..".
// Nothing is normalized: "/a/" is refused, and "/A" is not "/a". A Path is a value:
// it may be copied and compared with ==. The zero Path is invalid, and every
// request refuses it.
type Path struct {
	name string
}

// Root returns the path "/".
func Root() Path { return Path{"/"} }

// Parse returns the path with that text. The error is [ErrInvalid] and names the
// segment that is wrong.
func Parse(s string) (Path, error) {
	if s == "/" {
		return Root(), nil
	}
	if s == "" || s[0] != '/' {
		return Path{}, invalidPath(s, "does not begin with a slash")
	}
	depth := 0
	for segment := range strings.SplitSeq(s[1:], "/") {
		depth++
		if depth > maxDepth {
			return Path{}, invalidPath(s, "has more than "+strconv.Itoa(maxDepth)+" segments")
		}
		if fault := segmentFault(segment); fault != "" {
			return Path{}, invalidPath(s, "has a segment "+strconv.Itoa(depth)+" that "+fault)
		}
	}
	return Path{s}, nil
}

// MustParse is [Parse] for constant paths. It panics where Parse returns an error.
func MustParse(s string) Path {
	p, err := Parse(s)
	if err != nil {
		panic(err.Error())
	}
	return p
}

// segmentFault returns what is wrong with a segment, and "" for a valid one.
func segmentFault(segment string) string {
	switch {
	case segment == "":
		return "is empty"
	case segment == "." || segment == "..":
		return "is " + strconv.Quote(segment)
	case len(segment) > maxSegment:
		return "is longer than " + strconv.Itoa(maxSegment) + " bytes"
	case !utf8.ValidString(segment):
		return "is not UTF-8"
	case strings.ContainsFunc(segment, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

// Valid reports whether p is not the zero Path.
func (p Path) Valid() bool { return p.name != "" }

// String returns the text of the path, and "" for the zero Path.
func (p Path) String() string { return p.name }

// Child returns the path of a node directly below p. The error is [ErrInvalid],
// also for a segment with a slash in it.
func (p Path) Child(segment string) (Path, error) {
	if !p.Valid() {
		return Path{}, invalidPath("", "is the zero Path")
	}
	if segment == "" || strings.Contains(segment, "/") {
		return Path{}, invalidPath(segment, "is not one segment")
	}
	return Parse(p.key() + "/" + segment)
}

// Parent returns the path of the node directly above. It returns false for the
// root and for the zero Path.
func (p Path) Parent() (parent Path, ok bool) {
	if len(p.name) < 2 {
		return Path{}, false
	}
	return pathOf(p.name[:strings.LastIndexByte(p.name, '/')]), true
}

// Covers reports whether other is p or lies below it. "/a" does not cover "/ab".
// The zero Path covers nothing, and nothing covers it.
func (p Path) Covers(other Path) bool {
	return p.Valid() && other.Valid() && covers(p.key(), other.key())
}

// compare orders paths as a walk of the tree: parents before children, and
// children by the bytes of their segments.
func (p Path) compare(other Path) int {
	return slices.Compare(strings.Split(p.key(), "/"), strings.Split(other.key(), "/"))
}

// MarshalText returns the text of the path. The error is [ErrInvalid] for the zero
// Path.
func (p Path) MarshalText() ([]byte, error) {
	if !p.Valid() {
		return nil, invalidPath("", "is the zero Path")
	}
	return []byte(p.name), nil
}

// UnmarshalText parses a path, like [Parse]. After an error p is unchanged.
func (p *Path) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// key returns the form in which an ancestor is a prefix that ends before a slash:
// every segment follows a slash, and the root is empty.
func (p Path) key() string {
	if p == Root() {
		return ""
	}
	return p.name
}

// pathOf is the inverse of key.
func pathOf(key string) Path {
	if key == "" {
		return Root()
	}
	return Path{key}
}

// covers reports whether the node of key b is that of key a or lies below it.
func covers(a, b string) bool {
	return len(a) <= len(b) && b[:len(a)] == a && (len(a) == len(b) || b[len(a)] == '/')
}

func invalidPath(s, reason string) error {
	return &InvalidError{What: "path", Value: s, Reason: reason}
}
