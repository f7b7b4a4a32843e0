package lifecycle

import (
	"encoding/binary"
	"encoding/hex"
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
