// Package rt holds what all engines share: how a run ends, the JSON of its values, and its clock and randomness. A
// program's time.Now, math/rand, crypto/rand and hash/maphash use them, so a run is a function of the time and the seed
// that came with its request. rt counts what a run reads of them, for the effect journal.
//
// It knows nothing about how programs are checked or executed.
package rt

import (
	randv1 "math/rand"
	"math/rand/v2"
	"time"
)

// Reads counts a run's reads of the clock and of randomness.
type Reads struct {
	Clock      int `json:"clock,omitempty"`  // readings of the clock
	Randomness int `json:"chance,omitempty"` // draws, whatever their size
}

// Env is the clock and the randomness of one compiled program. It is not safe for concurrent use: runs follow one
// another.
type Env struct {
	now   time.Time
	reads Reads // since Begin
	chaos *rand.ChaCha8
	// v1 draws from the same generator. All runs of the Env share it.
	v1   *randv1.Rand
	wait func(time.Duration) // may be nil

	advanced func(time.Time) // may be nil
}

// OnSleep sets a function to call with the duration of each sleep. nil means that sleeps do not wait.
func (e *Env) OnSleep(wait func(time.Duration)) { e.wait = wait }

// OnAdvance sets a function to call with the time after each sleep.
func (e *Env) OnAdvance(advanced func(now time.Time)) { e.advanced = advanced }

// New returns an Env at the zero time with seed 0.
func New() *Env {
	e := &Env{}
	e.v1 = randv1.New(sourceV1{e})
	e.Begin(time.Unix(0, 0).UTC(), 0)
	return e
}

// Begin starts a run: the clock stands at now, and the randomness starts from seed.
func (e *Env) Begin(now time.Time, seed uint64) {
	e.now = now.Round(0).UTC() // no monotonic reading: a replay could not reproduce it
	e.reads = Reads{}
	var key [32]byte
	for i := range 4 {
		seed = splitmix(seed + uint64(i))
		for j := range 8 {
			key[i*8+j] = byte(seed >> (8 * j))
		}
	}
	e.chaos = rand.NewChaCha8(key)
	e.v1.Seed(0) // discards the bytes of a number that was read in part
}

// V1 returns the generator behind the functions of math/rand. All runs share it; Begin resets it.
func (e *Env) V1() *randv1.Rand { return e.v1 }

// sourceV1 implements the Source of math/rand on an Env. Only Begin seeds it.
type sourceV1 struct{ *Env }

// Int63 implements rand.Source.
func (s sourceV1) Int63() int64 { return int64(s.Uint64() >> 1) }
func (s sourceV1) Seed(int64)   {}

// splitmix is the SplitMix64 generator. It spreads a seed over the key of ChaCha8.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Reads returns the number of reads since Begin.
func (e *Env) Reads() Reads { return e.reads }

// Now reads the clock. It stands still during a run except for Sleep, so a replay sees the same times.
func (e *Env) Now() time.Time {
	e.reads.Clock++
	return e.now
}

// Sleep advances the clock by d and calls the functions set by OnSleep and OnAdvance. A duration of 0 or less has no
// effect.
func (e *Env) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	e.now = e.now.Add(d)
	if e.wait != nil {
		e.wait(d)
	}
	if e.advanced != nil {
		e.advanced(e.now)
	}
}

// Uint64 draws 64 bits. It makes Env a Source of math/rand/v2.
func (e *Env) Uint64() uint64 {
	e.reads.Randomness++
	return e.chaos.Uint64()
}

// Uint64N draws a number below n. n must not be 0.
func (e *Env) Uint64N(n uint64) uint64 { return rand.New(e).Uint64N(n) }

// Read fills p with random bytes. It never fails.
func (e *Env) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		x := e.Uint64()
		for j := i; j < min(i+8, len(p)); j++ {
			p[j] = byte(x)
			x >>= 8
		}
	}
	return len(p), nil
}

// Text returns 26 random letters and digits, as crypto/rand.Text does.
func (e *Env) Text() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	b := make([]byte, 26)
	e.Read(b)
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return string(b)
}
