package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
)

// Token names one commit: 128 random bits, kept in the history. An unknown outcome
// is resolved by sending the commit again with the same token.
type Token [16]byte

// NewToken returns a new token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // it never returns an error
	return t
}

// String returns the token as 32 hexadecimal digits.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// MarshalText returns the text of [Token.String].
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (t *Token) UnmarshalText(text []byte) error {
	var read Token
	if n, err := hex.Decode(read[:], text[:min(len(text), 2*len(read))]); err != nil || n != len(read) || len(text) != 2*n {
		return errors.New("lifecycle: token is not 32 hexadecimal digits")
	}
	*t = read
	return nil
}
