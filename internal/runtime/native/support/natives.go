package support

import (
	"io"
	randv2 "math/rand/v2"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// env holds the clock and the randomness of the run.
var env = rt.New()

// Replacements of variables of math/rand, math/rand/v2 and crypto/rand. Programs on yaegi get the same (package
// symbols).
var (
	Rand             = env.V1()
	RandV2           = randv2.New(env)
	Reader io.Reader = reader{}
)

type reader struct{}

func (reader) Read(p []byte) (int, error) { return env.Read(p) }

// Now replaces time.Now.
func Now() time.Time { return env.Now() }

// Since replaces time.Since.
func Since(t time.Time) time.Duration { return env.Now().Sub(t) }

// Until replaces time.Until.
func Until(t time.Time) time.Duration { return t.Sub(env.Now()) }

// LoadLocation replaces time.LoadLocation.
func LoadLocation(name string) (*time.Location, error) { return rt.LoadLocation(name) }

// Sleep replaces time.Sleep.
func Sleep(d time.Duration) { env.Sleep(d) }

// OnAdvance sets a function to call with the time after each sleep of a run.
func OnAdvance(advanced func(now time.Time)) { env.OnAdvance(advanced) }

// Read replaces crypto/rand.Read.
func Read(p []byte) (int, error) { return env.Read(p) }

// Text replaces crypto/rand.Text.
func Text() string { return env.Text() }

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// N replaces math/rand/v2.N.
func N[Int integer](n Int) Int {
	if n <= 0 {
		panic("invalid argument to N")
	}
	return Int(env.Uint64N(uint64(n)))
}

// Print, Println and Printf replace those of fmt. They print nothing, because there is no terminal.
func Print(...any) (int, error) { return 0, nil }

func Println(...any) (int, error) { return 0, nil }

func Printf(string, ...any) (int, error) { return 0, nil }

// Scan, Scanln and Scanf replace those of fmt. They return io.EOF.
func Scan(...any) (int, error) { return 0, io.EOF }

func Scanln(...any) (int, error) { return 0, io.EOF }

func Scanf(string, ...any) (int, error) { return 0, io.EOF }

// Discard replaces the built-in functions print and println.
func Discard(...any) {}
