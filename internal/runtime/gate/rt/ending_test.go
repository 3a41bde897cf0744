package rt

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

type tagged struct {
	A int
	b int
	C string `json:"c,omitempty"`
}

type marshals struct{}

func (marshals) MarshalJSON() ([]byte, error) { return []byte("[1]"), nil }

type breaks struct{}

func (breaks) MarshalJSON() ([]byte, error) { panic("no") }

type node struct{ P *node }

// Encode returns the JSON of encoding/json, and an error for a value that has none.
func TestEncode(t *testing.T) {
	t.Parallel()
	cycle := &node{}
	cycle.P = cycle
	for _, c := range []struct {
		value     any
		want, err string
	}{
		{[]tagged{{1, 2, ""}}, `[{"A":1}]`, ""},
		{map[string]any{"m": marshals{}, "p": &marshals{}}, `{"m":[1],"p":[1]}`, ""},
		{make(chan int), "", "unsupported type: chan int"},
		{math.NaN(), "", "unsupported value: NaN"},
		{cycle, "", "encountered a cycle"},
		{breaks{}, "", "panicked: no"},
		{"<&>", `"<&>"`, ""},
	} {
		raw, err := Encode(c.value)
		if string(raw) != c.want || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%T: got %s, %v", c.value, raw, err)
		}
	}
}

type lies struct{}

func (lies) Error() string { panic("no") }

// The message of a panic is the text of its value, bounded, whatever its methods do.
func TestPanicOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value          any
		class, message string
	}{
		{errors.New("x"), "error", "x"}, {"text", "string", "text"}, {7, "int", "7"},
		{nil, "exit", "Run did not return"}, {lies{}, "error", "a panic whose text panics"},
		{&Failure{"why"}, ClassFailure, "why"}, {&recurgent.Mismatch{Message: "no number"}, ClassInput, "no number"},
		{strings.Repeat("x", 5000), "string", strings.Repeat("x", 4096) + "..."},
	} {
		if p := PanicOf(c.value); p.Class != c.class || p.Message != c.message || p.Line != 0 {
			t.Errorf("%T: got %+v", c.value, p)
		}
	}
}
