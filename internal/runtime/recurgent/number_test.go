package recurgent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Whole numbers keep their digits wherever JSON is decoded into any. Everything else is as in encoding/json.
func TestUnmarshalKeepsDigits(t *testing.T) {
	t.Parallel()
	type row struct {
		ID   any             `json:"id"`
		N    int64           `json:"n"`
		More map[string]any  `json:"more"`
		Raw  json.RawMessage `json:"raw"`
		List []any           `json:"list"`
		Num  json.Number     `json:"num"`
		By   map[string]row2 `json:"by"`
	}
	const text = `{"id":7615917337495251231,"n":7615917337495251231,"more":{"id":1234567890123456789,"f":1.5,"deep":[{"x":9007199254740993}]},"raw":{"id": 7615917337495251231},"list":[1,9223372036854775808,-9007199254740993,"7615917337495251231"],"num":5,"by":{"a":{"v":9007199254740993}}}`
	var got row
	if err := Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := row{ID: json.Number("7615917337495251231"), N: 7615917337495251231,
		More: map[string]any{"id": json.Number("1234567890123456789"), "f": 1.5,
			"deep": []any{map[string]any{"x": json.Number("9007199254740993")}}},
		Raw: json.RawMessage(`{"id": 7615917337495251231}`), List: []any{1.0, json.Number("9223372036854775808"),
			json.Number("-9007199254740993"), "7615917337495251231"}, Num: "5",
		By: map[string]row2{"a": {json.Number("9007199254740993")}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	for text, exact := range map[string]any{"9007199254740992": 9007199254740992.0,
		"9007199254740993": json.Number("9007199254740993"), "1e30": 1e30,
		"123456789012345678901234567890": json.Number("123456789012345678901234567890"),
		"-0":                             nil, "1234567890123456.5": 1234567890123456.5} {
		var v any
		if err := Unmarshal([]byte(text), &v); err != nil || exact != nil && v != exact {
			t.Errorf("%s is %#v, %v", text, v, err)
		}
		if _, number := exact.(json.Number); Inexact([]byte(`{"a":["`+"7615917337495251231"+`",`+text+`]}`)) != number {
			t.Errorf("%s is inexact: %v", text, !number)
		}
	}
	var v any
	if err := Unmarshal([]byte(`[1e999,12345678901234567890]`),
		&v); err == nil || v != nil && reflect.DeepEqual(v, []any{json.Number("1e999")}) {
		t.Errorf("out of range: %v, %v", v, err)
	}
	if n, ok := As(json.Number("7615917337495251231"), int64(0)).(int64); !ok || n != 7615917337495251231 {
		t.Errorf("As gives %v", n)
	}
	if _, ok := As(json.Number("7615917337495251231"), 0.0).(float64); ok {
		t.Error("As rounds")
	}
}

// A whole number that a program takes for a float64 ends the run with words that say so. It is exact elsewhere.
func TestDigitsThatFloatsLose(t *testing.T) {
	t.Parallel()
	type inner struct {
		ID any `json:"id"`
	}
	type outer struct {
		inner
		Amount float64 `json:"amount"`
		Rows   []struct{ N *float64 }
		By     map[string]float64
	}
	const id = "7615917337495251231"
	list, number := []any{1.0, json.Number(id)}, json.Number(id)
	const only = id + " is a json.Number, because a float64 does not hold all its digits; the program takes only float64"
	for name, c := range map[string]struct {
		do   func()
		want string
	}{
		"a field":   {into[outer](`{"id": ` + id + `, "amount": ` + id + `}`), "the field amount is a float64, which does not hold all digits of " + id + "; it must be a json.Number or an int64"},
		"an item":   {into[outer](`{"Rows": [{}, {"N": ` + id + `}]}`), "the field Rows[1].N is"},
		"a member":  {into[outer](`{"By": {"a": 1, "b": -9007199254740993}}`), "the field By.b is"},
		"Or":        {func() { Or(number, 10.0) }, only},
		"Held":      {func() { Held(number, 10.0) }, only},
		"a list":    {func() { Must(list, []float64{}) }, only},
		"a text":    {func() { Must(number, "") }, "a text is needed, not " + id},
		"too large": {func() { Must(json.Number("123456789012345678901"), 0) }, "a smaller whole number is needed, not 123456789012345678901"},
		"a case":    {func() { Case(json.Number("123456789012345678901"), "", 0) }, "a smaller whole number is needed, not 123456789012345678901"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				got := recover()
				if m, ok := got.(*Mismatch); ok {
					got = m.Message
				}
				if text, _ := got.(string); !strings.HasPrefix(text, c.want) {
					t.Errorf("got %v", got)
				}
			}()
			c.do()
		})
	}
	var v outer
	if err := Unmarshal([]byte(`{"id": 5, "amount": 1.5, "Rows": [{"N": 100000000000000000000}], "By": {"`+id+`": 2}}`), &v); err != nil || v.ID != 5.0 {
		t.Errorf("got %#v, %v", v, err)
	}
	if got := Must(json.Number("5"), 0.0); got != 5.0 {
		t.Errorf("a small json.Number gives %v", got)
	}
}

type row2 struct {
	V any `json:"v"`
}

func into[T any](text string) func() {
	return func() {
		var v T
		_ = Unmarshal([]byte(text), &v)
	}
}
