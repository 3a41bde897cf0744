// Package rt holds what all that run programs share: how a run ends, the JSON form of its values, and the clock and the
// randomness of a run. A program's time.Now, math/rand, crypto/rand and hash/maphash use it, so that a run is a function of the time and the seed that came with the request. It counts, up to
// a cap, what a run reads of them, for the effect journal.
//
// It knows nothing of how programs are checked or executed.
package rt

import (
	randv1 "math/rand"
	"math/rand/v2"
	"time"
)

// Reads counts a run's reads of the clock and of randomness.
type Reads struct {
	Clock      int `json:"clock,omitempty"`  // readings of the clock
	Randomness int `json:"chance,omitempty"` // draws of any size
}

// Env is the clock and the randomness of one compiled program: one run after another, never two at once.
type Env struct {
	now   time.Time
	reads Reads
	chaos *rand.ChaCha8
	v1    *randv1.Rand
	wait  func(time.Duration)
}

// OnSleep has wait called with each sleep of the runs to come; nil for none.
func (e *Env) OnSleep(wait func(time.Duration)) { e.wait = wait }

// New returns an Env at the zero time with seed 0.
func New() *Env {
	e := &Env{}
	e.v1 = randv1.New(sourceV1{e})
	e.Begin(time.Unix(0, 0).UTC(), 0)
	return e
}

// Begin starts a run: the clock stands at now, and randomness starts from seed.
func (e *Env) Begin(now time.Time, seed uint64) {
	e.now = now.Round(0).UTC() // without the monotonic reading, which no replay could give again
	e.reads = Reads{}
	var key [32]byte
	for i := range 4 {
		seed = splitmix(seed + uint64(i))
		for j := range 8 {
			key[i*8+j] = byte(seed >> (8 * j))
		}
	}
	e.chaos = rand.NewChaCha8(key)
	e.v1.Seed(0) // it keeps bytes of a number that was read in part
}

// V1 returns the generator of math/rand's functions. It is the same for all runs, and starts anew with each.
func (e *Env) V1() *randv1.Rand { return e.v1 }

// sourceV1 makes an Env a source of math/rand.
type sourceV1 struct{ *Env }

func (s sourceV1) Int63() int64 { return int64(s.Uint64() >> 1) }
func (s sourceV1) Seed(int64)   {}

func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Reads returns what the run since Begin has read.
func (e *Env) Reads() Reads { return e.reads }

// Now reads the clock. It stands still during a run but for Sleep: a replay sees the same time at the same place.
func (e *Env) Now() time.Time {
	e.reads.Clock++
	return e.now
}

// Sleep moves the clock by d, and waits as OnSleep says.
func (e *Env) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	e.now = e.now.Add(d)
	if e.wait != nil {
		e.wait(d)
	}
}

// Uint64 draws 64 bits. It makes Env a rand/v2 Source.
func (e *Env) Uint64() uint64 {
	e.reads.Randomness++
	return e.chaos.Uint64()
}

// Uint64N draws a number below n, which is not 0.
func (e *Env) Uint64N(n uint64) uint64 { return rand.New(e).Uint64N(n) }

// Read fills p. It never fails.
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
