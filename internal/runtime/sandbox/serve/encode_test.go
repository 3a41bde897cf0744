package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

type hidden struct{ total float64 }

type shown struct {
	sync.Mutex
	Total float64
	note  string
}

type addressed struct{ n int }

func (a *addressed) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(a.n), 10), nil }

// jsonEngine encodes like all engines.
type jsonEngine struct{ Engine }

func (jsonEngine) Encode(v any) (json.RawMessage, error) { return json.Marshal(v) }

// A value that encodes to {} although it holds data is an error that names its type. Empty values, and values that
// encode themselves, are unaffected.
func TestEncodeLosesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string // part of the JSON, or of the error
	}{
		{map[string]any{"a": map[string]any{}}, `{"a":{}}`},
		{struct{}{}, `{}`},
		{[]struct{}{{}}, `[{}]`},
		{&shown{Total: 1, note: "n"}, `{"Total":1}`},
		{struct{ At time.Time }{}, `{"At":"0001-01-01T00:00:00Z"}`},
		{big.NewInt(7), `7`},
		{&struct{ A addressed }{}, `{"A":"0"}`},
		{map[string]any{"e": errors.New("it failed")}, "a value of errors.errorString has no JSON form"},
		{bytes.NewBufferString("text"), "a value of bytes.Buffer has no JSON form"},
		{[]any{1, &strings.Builder{}}, "a value of strings.Builder has no JSON form"},
		{hidden{1}, "a value of serve.hidden has no JSON form"},
		{map[string]hidden{"x": {1}}, "a value of serve.hidden has no JSON form"},
		{[][]*hidden{{{1}}}, "a value of serve.hidden has no JSON form"},
		{struct{ In any }{hidden{1}}, "a value of serve.hidden has no JSON form"},
		{struct {
			Skipped hidden `json:"-"`
			Other   struct{}
		}{}, `{"Other":{}}`},
	} {
		got, err := (&server{engine: jsonEngine{}}).encode(c.v)
		if text := string(got); err != nil && !strings.HasPrefix(err.Error(), c.want) || err == nil && text != c.want {
			t.Errorf("%T: %s, %v; want %s", c.v, text, err, c.want)
		}
	}
}
