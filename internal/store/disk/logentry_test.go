package disk

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// fill sets every field that reflection reaches to something that is not zero.
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
		got, err := appendLog(nil, &e, true)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v\nwant %s", name, got, err, want)
		}
		short, err := appendLog(nil, &e, false)
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

// Numbers are written as encoding/json writes them; NaN and infinities are errors.
func TestAppendFloat(t *testing.T) {
	t.Parallel()
	type number struct {
		N float64 `json:"n"`
	}
	code := codeOf(reflect.TypeFor[number]())
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 0.1, 123456789.25, 1e-6, 9.9e-7, -1e-9, 1e20, 1e21, -1e21, 1.7e308, 5e-324, math.NaN(), math.Inf(1)} {
		want, wantErr := json.Marshal(number{f})
		w := jsonWriter{}
		code.append(&w, reflect.ValueOf(&number{f}).Elem(), true)
		if (w.err != nil) != (wantErr != nil) || wantErr == nil && string(w.buf) != string(want) {
			t.Errorf("%v: got %s, %v, want %s, %v", f, w.buf, w.err, want, wantErr)
		}
	}
}
