package disk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// fill sets every field that reflection can reach to a value other than zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text <%d> \"ü\"", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		v.Set(reflect.ValueOf(float64(*n)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		x := reflect.New(v.Type().Elem()).Elem()
		fill(x, n)
		v.SetMapIndex(reflect.ValueOf("key"), x)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(fmt.Sprintf(`{"n":%d}`, *n)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("a kind that this test does not know: " + v.Kind().String())
	}
}

func TestAppendLog(t *testing.T) {
	t.Parallel()
	var filled, empty agent.LogEntry
	n := 0
	fill(reflect.ValueOf(&filled).Elem(), &n)
	empty.Args, empty.WeakSuccessReasons = []json.RawMessage{}, []string{}
	for name, e := range map[string]agent.LogEntry{"filled": filled, "zero": {}, "empty lists": empty} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendLog(nil, &e)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v\nwant %s", name, got, err, want)
		}
		short, err := encodeShortLog(&e)
		if err != nil {
			t.Fatal(err)
		}
		var back agent.LogEntry
		if err := json.Unmarshal(short, &back); err != nil {
			t.Fatalf("%s: %v in %s", name, err, short)
		}
		if again, _ := json.Marshal(back); string(again) != string(want) {
			t.Errorf("%s: the short form %s reads as %s, want %s", name, short, again, want)
		}
	}
}

// Encoding a warm call's entry allocates little: the entry, what waits for the call log, and the outcome.
func TestEncodeCallAllocations(t *testing.T) {
	c := warm("sess_w000", 1, time.Now())
	encode := func() {
		w := encoders.Get().(*jsonenc.Writer)
		if _, err := encodeCall(w, agent.DefaultNamespace, c, c.Artifacts[0].At); err != nil {
			t.Fatal(err)
		}
		release(w)
	}
	encode()
	if n := testing.AllocsPerRun(200, encode); n > 5 {
		t.Errorf("got %v allocations, want at most 5", n)
	}
}
