package recurgent

import (
	"encoding/json"
	"reflect"
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

type row2 struct {
	V any `json:"v"`
}
