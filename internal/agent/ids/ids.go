// Package ids makes the ids of sessions, calls, programs and whatever else is stored. It is apart from package agent, because programs of
// runners have no use for randomness and for what github.com/google/uuid brings with it, which is package net.
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

// New returns prefix_ and a UUIDv7 in lower-case Crockford base32: 26 characters which sort by time of making.
// It may be called concurrently.
func New(prefix string) string {
	u, err := uuid.NewV7()
	if err != nil {
		panic("no randomness: " + err.Error()) // crypto/rand never fails on the systems Go supports since 1.24
	}
	id := append(make([]byte, 0, 64), prefix...)
	return string(crockford.AppendEncode(append(id, '_'), u[:]))
}

// ephemeralEnd ends the ids of ephemeral sessions. Ids say so, since retention must find these among many others without
// reading them; they still sort by time of making.
const ephemeralEnd = "e"

// NewSession returns the id of a new session. An ephemeral one is erased Policy.Retention.ValueHours after its last use.
func NewSession(ephemeral bool) string {
	id := New("sess")
	if ephemeral {
		id += ephemeralEnd
	}
	return id
}

// Ephemeral reports whether the id is that of an ephemeral session.
func Ephemeral(id string) bool {
	return len(id) == len("sess_")+26+len(ephemeralEnd) && strings.HasSuffix(id, ephemeralEnd)
}

// Time is when New made the id; the zero time when it did not.
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
