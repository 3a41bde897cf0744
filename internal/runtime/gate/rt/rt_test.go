package rt

//lint:file-ignore SA4000 the same is asked twice

import (
	"testing"
	"time"
)

// The same seed gives the same random numbers, and another seed gives others. Only Sleep moves the clock.
func TestEnv(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (out [4]uint64) {
		e := New()
		e.Begin(time.Unix(100, 0), seed)
		for i := range out {
			out[i] = e.Uint64()
		}
		return out
	}
	if draw(1) != draw(1) || draw(1) == draw(2) || draw(0) == draw(1) {
		t.Error("random numbers do not follow the seed")
	}
	e := New()
	e.Begin(time.Unix(100, 0), 1)
	a := e.Now()
	e.Sleep(time.Hour)
	e.Sleep(-time.Hour)
	if d := e.Now().Sub(a); d != time.Hour {
		t.Errorf("the clock moved by %v", d)
	}
	b := make([]byte, 13)
	if n, err := e.Read(b); n != 13 || err != nil || len(e.Text()) != 26 {
		t.Errorf("read %d, %v", n, err)
	}
	if r := e.Reads(); r.Clock != 2 || r.Randomness == 0 {
		t.Errorf("reads: %+v", r)
	}
	if e.Begin(a, 1); e.Reads() != (Reads{}) {
		t.Error("reads outlive their run")
	}
	var first, second [3]byte
	e.V1().Read(first[:])
	e.Begin(a, 1)
	if e.V1().Read(second[:]); first != second {
		t.Errorf("read %v, and %v in the next run", first, second)
	}
}
