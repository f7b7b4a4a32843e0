package lock

import (
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxDepth is the number of segments that a path may have.
	MaxDepth = 32
	// MaxSegment is the number of bytes that a segment may have.
	MaxSegment = 255
)

// Path names a node of a tree: "/" is the root, "/a/b" the node b below a. A
// node needs not exist to be locked: a path is a name, and locking the name
// covers the creation of what it names.
//
// [Parse], [Root] and [Path.Child] make a Path, and only a valid one: 1 to 32
// segments of 1 to 255 bytes of UTF-8 without control characters, none of them
// "." or "..". Nothing is normalized: "/a/" is refused, "/A" is not "/a". Equal
// paths are the same node. The zero Path is invalid; every request refuses it.
type Path struct {
	name string // as it is written
}

// Root returns the path "/".
func Root() Path { return Path{"/"} }

// Parse checks a path once, so that no lock operation has to. The error is
// [ErrInvalid] and says which segment is wrong.
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
		if depth > MaxDepth {
			return Path{}, invalidPath(s, "has more than "+strconv.Itoa(MaxDepth)+" segments")
		}
		if fault := faultOf(segment); fault != "" {
			return Path{}, invalidPath(s, "has a segment "+strconv.Itoa(depth)+" that "+fault)
		}
	}
	return Path{s}, nil
}

// MustParse is Parse for paths in the program's text. It panics where Parse
// returns an error.
func MustParse(s string) Path {
	p, err := Parse(s)
	if err != nil {
		panic(err.Error())
	}
	return p
}

// faultOf says what is wrong with a segment, or nothing.
func faultOf(segment string) string {
	switch {
	case segment == "":
		return "is empty"
	case segment == "." || segment == "..":
		return "is " + strconv.Quote(segment)
	case len(segment) > MaxSegment:
		return "is longer than " + strconv.Itoa(MaxSegment) + " bytes"
	case !utf8.ValidString(segment):
		return "is not UTF-8"
	case strings.ContainsFunc(segment, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

// Valid reports whether p was made by this package and not by leaving it out.
func (p Path) Valid() bool { return p.name != "" }

// String returns the path as it is written; of the zero Path, nothing.
func (p Path) String() string { return p.name }

// IsRoot reports whether p is "/".
func (p Path) IsRoot() bool { return p.name == "/" }

// Depth returns the number of segments; the root has none.
func (p Path) Depth() int {
	if len(p.name) < 2 {
		return 0
	}
	return strings.Count(p.name, "/")
}

// Segments returns the segments, from the root down.
func (p Path) Segments() iter.Seq[string] {
	if key := p.key(); key != "" {
		return strings.SplitSeq(key[1:], "/")
	}
	return func(func(string) bool) {}
}

// Child returns the path of a node directly below. The error is [ErrInvalid];
// a segment with a slash in it is refused, not split.
func (p Path) Child(segment string) (Path, error) {
	if !p.Valid() {
		return Path{}, invalidPath("", "is the zero Path")
	}
	if strings.Contains(segment, "/") {
		return Path{}, invalidPath(segment, "has a slash: a segment cannot")
	}
	if fault := faultOf(segment); fault != "" {
		return Path{}, invalidPath(segment, fault)
	}
	if p.Depth() == MaxDepth {
		return Path{}, invalidPath(p.key()+"/"+segment, "has more than "+strconv.Itoa(MaxDepth)+" segments")
	}
	return Path{p.key() + "/" + segment}, nil
}

// Parent returns the path of the node directly above. The root has none.
func (p Path) Parent() (parent Path, ok bool) {
	switch i := strings.LastIndexByte(p.name, '/'); {
	case len(p.name) < 2:
		return Path{}, false
	case i == 0:
		return Root(), true
	default:
		return Path{p.name[:i]}, true
	}
}

// Covers reports whether other is p or lies below it. "/a" does not cover
// "/ab".
func (p Path) Covers(other Path) bool {
	return p.Valid() && other.Valid() && covers(p.key(), other.key())
}

// Compare orders paths like a walk of the tree: parents before children, and
// children by the bytes of their segments.
func (p Path) Compare(other Path) int {
	a, b := p.key(), other.key()
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			switch {
			case x == '/': // the shorter segment is first
				return -1
			case y == '/':
				return 1
			case x < y:
				return -1
			default:
				return 1
			}
		}
	}
	return len(a) - len(b)
}

// MarshalText returns the path as it is written. The error is [ErrInvalid].
func (p Path) MarshalText() ([]byte, error) {
	if !p.Valid() {
		return nil, invalidPath("", "is the zero Path")
	}
	return []byte(p.name), nil
}

// UnmarshalText is [Parse].
func (p *Path) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// key is the form in which "is above" means "is a prefix that ends at a slash":
// the root is empty, and every segment follows a slash.
func (p Path) key() string {
	if len(p.name) == 1 {
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

// covers reports whether the node of key b is that of a or lies below it.
func covers(a, b string) bool {
	return len(a) <= len(b) && b[:len(a)] == a && (len(a) == len(b) || b[len(a)] == '/')
}

func invalidPath(s, reason string) error {
	return &InvalidError{What: "path", Value: s, Reason: reason}
}
