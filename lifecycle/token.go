package lifecycle

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
)

// Token names one commit, once and for all time: 128 bits that no other has, kept
// in the history. Sending a commit again with the same token is how a lost answer is
// settled.
type Token [16]byte

// NewToken returns a token that nobody has used. The generator is the runtime's
// ChaCha8, seeded by the operating system: tokens need to be unique, not secret.
func NewToken() (t Token) {
	binary.LittleEndian.PutUint64(t[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(t[8:], rand.Uint64())
	return t
}

// next returns a token that nobody has used, for a fraction of the price of a new
// one: after the first, those of one t differ in a count, and a t begins anywhere
// among 2^128. REQUIRES: t is not copied, and belongs to one goroutine at a time.
func (t *Token) next() Token {
	if *t == (Token{}) {
		*t = NewToken()
		return *t
	}
	count := t[8:]
	binary.LittleEndian.PutUint64(count, binary.LittleEndian.Uint64(count)+1)
	return *t
}

// String returns the token as 32 hexadecimal digits.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// MarshalText is [Token.String].
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (t *Token) UnmarshalText(text []byte) error {
	var read Token
	if n, err := hex.Decode(read[:], text[:min(len(text), 2*len(read))]); err != nil || n != len(read) || len(text) != 2*n {
		return errors.New("lifecycle: a token has 32 hexadecimal digits")
	}
	*t = read
	return nil
}
