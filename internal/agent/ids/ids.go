// Package ids makes the ids of sessions, calls, programs and other stored things. It is separate from package agent
// because runner programs need no randomness, and github.com/google/uuid imports package net.
//
// The package keeps no state. All its functions may be called concurrently.
package ids

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"
)

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// New returns prefix_ and a UUIDv7 in lower-case Crockford base32: 26 characters, which sort by creation time. It may
// be called concurrently.
func New(prefix string) string {
	u, err := uuid.NewV7()
	if err != nil {
		// crypto/rand never fails on the systems that Go has supported since 1.24.
		panic("no randomness: " + err.Error())
	}
	id := append(make([]byte, 0, 64), prefix...)
	return string(crockford.AppendEncode(append(id, '_'), u[:]))
}

// ephemeralEnd is the suffix of ephemeral session ids. Retention uses it to find them among many others without reading
// them. The ids still sort by creation time.
const ephemeralEnd = "e"

// NewSession returns the id of a new session. An ephemeral session is erased Policy.Retention.ValueHours after its last
// use.
func NewSession(ephemeral bool) string {
	id := New("sess")
	if ephemeral {
		id += ephemeralEnd
	}
	return id
}

// Ephemeral reports whether the id belongs to an ephemeral session.
func Ephemeral(id string) bool {
	return len(id) == len("sess_")+26+len(ephemeralEnd) && strings.HasSuffix(id, ephemeralEnd)
}

// Time returns the time at which New made the id, or the zero time for any other id.
func Time(id string) time.Time {
	_, digits, _ := strings.Cut(id, "_")
	raw, err := crockford.DecodeString(digits)
	if err != nil || len(raw) != len(uuid.UUID{}) {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw) >> 16)) // a UUIDv7 begins with 48 bits of milliseconds
}

// NewTrace returns a W3C trace id: 32 lower-case hexadecimal digits.
func NewTrace() string {
	var b [16]byte
	var text [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	hex.Encode(text[:], b[:])
	return string(text[:])
}
