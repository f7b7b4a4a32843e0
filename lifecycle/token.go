package lifecycle

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
)

// Token names one commit, once and for all time: 128 random bits, kept in the
// history. Sending a commit again with the same token is how a lost answer is
// settled.
type Token [16]byte

// NewToken returns a token that nobody has used. The generator is the runtime's
// ChaCha8, seeded by the operating system: tokens need to be unique, not secret.
func NewToken() (t Token) {
	binary.LittleEndian.PutUint64(t[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(t[8:], rand.Uint64())
	return t
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
