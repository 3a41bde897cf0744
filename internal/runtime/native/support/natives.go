package support

import (
	"io"
	randv2 "math/rand/v2"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// env is the clock and the randomness of the run.
var env = rt.New()

// Replacements of functions and variables of time, math/rand, math/rand/v2, crypto/rand and fmt. Programs on yaegi get the
// same (package symbols).
var (
	Rand             = env.V1()
	RandV2           = randv2.New(env)
	Reader io.Reader = reader{}
)

type reader struct{}

func (reader) Read(p []byte) (int, error) { return env.Read(p) }

// Now is time.Now.
func Now() time.Time { return env.Now() }

// Since is time.Since.
func Since(t time.Time) time.Duration { return env.Now().Sub(t) }

// Until is time.Until.
func Until(t time.Time) time.Duration { return t.Sub(env.Now()) }

// LoadLocation is time.LoadLocation.
func LoadLocation(name string) (*time.Location, error) { return rt.LoadLocation(name) }

// Sleep is time.Sleep.
func Sleep(d time.Duration) { env.Sleep(d) }

// Read is crypto/rand.Read.
func Read(p []byte) (int, error) { return env.Read(p) }

// Text is crypto/rand.Text.
func Text() string { return env.Text() }

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// N is math/rand/v2.N.
func N[Int integer](n Int) Int {
	if n <= 0 {
		panic("invalid argument to N")
	}
	return Int(env.Uint64N(uint64(n)))
}

// Print, Println and Printf are fmt's: there is no terminal.
func Print(...any) (int, error) { return 0, nil }

func Println(...any) (int, error) { return 0, nil }

func Printf(string, ...any) (int, error) { return 0, nil }

// Scan, Scanln and Scanf are fmt's.
func Scan(...any) (int, error) { return 0, io.EOF }

func Scanln(...any) (int, error) { return 0, io.EOF }

func Scanf(string, ...any) (int, error) { return 0, io.EOF }

// Discard is the built-in print and println.
func Discard(...any) {}
