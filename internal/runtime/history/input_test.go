package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

func signature(t testing.TB) *contract.Signature {
	t.Helper()
	s, err := contract.ParseSignature(json.RawMessage(
		`{"inputs":[{"name":"question"},{"name":"topic"},{"name":"history","type":"history"}],"outputs":[{"name":"answer"},{"name":"score","type":"number"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// Parse accepts history inputs and names the fault of everything else.
func TestParse(t *testing.T) {
	t.Parallel()
	good := `{"question":"q","answer":"a"}`
	tests := []struct {
		name, raw string
		turns     int
		code      string
		meta      string
	}{
		{"omitted", ``, 0, "", ""},
		{"null", ` null `, 0, "", ""},
		{"no messages", `{"messages":[]}`, 0, "", ""},
		{"one", `{"messages":[` + good + `]}`, 1, "", ""},
		{"extra members beside messages", `{"messages":[` + good + `],"x":1}`, 1, "", ""},
		{"string", `"x"`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"string"}`},
		{"number", `5`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"number"}`},
		{"list", `[]`, 0, "invalid_history_value", `{"expected":"{messages: [...]}","field":"history","got":"array"}`},
		{"empty object", `{}`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"object without messages"}`},
		{"messages is a string", `{"messages":"x"}`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"object with messages: string"}`},
		{"messages is null", `{"messages":null}`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"object with messages: null"}`},
		{"broken JSON", `{"messages":`, 0, "invalid_history_value",
			`{"expected":"{messages: [...]}","field":"history","got":"object"}`},
		{"an element that is no object", `{"messages":[` + good + `,5]}`, 0, "invalid_history_element",
			`{"index":1,"reason":"not_an_object"}`},
		{"the first bad one wins", `{"messages":[` + good + `,` + good + `,{"answer":"a"},{"question":"q"}]}`, 0,
			"invalid_history_element", `{"index":2,"reason":"missing_input_fields"}`},
		{"no output", `{"messages":[{"question":"q"}]}`, 0, "invalid_history_element",
			`{"index":0,"reason":"missing_output_fields"}`},
		{"the history field is no input", `{"messages":[{"history":{"messages":[]},"answer":"a"}]}`, 0,
			"invalid_history_element", `{"index":0,"reason":"missing_input_fields"}`},
		{"null fields are absent", `{"messages":[{"question":null,"answer":"a"}]}`, 0, "invalid_history_element",
			`{"index":0,"reason":"missing_input_fields"}`},
		{"a part of the fields is enough", `{"messages":[{"topic":"t","score":1}]}`, 1, "", ""},
		{"too many", `{"messages":[` + strings.Repeat(good+",", 5) + good + `]}`, 0, "too_large",
			`{"got":6,"limit":5,"unit":"elements"}`},
		{"too long", `{"messages":[` + strings.Repeat(" ", 1000) + `]}`, 0, "too_large",
			`{"got":1015,"limit":500,"unit":"bytes"}`},
	}
	for _, tt := range tests {
		turns, err := Parse(json.RawMessage(tt.raw), "history", signature(t), Limits{Elements: 5, Bytes: 500})
		var e *Error
		code, meta := "", ""
		if errors.As(err, &e) {
			b, _ := json.Marshal(e.Meta)
			code, meta = e.Code, string(b)
		}
		if len(turns) != tt.turns || code != tt.code || meta != tt.meta {
			t.Errorf("%s: got %d turns, %s %s; want %d, %s %s", tt.name, len(turns), code, meta, tt.turns, tt.code,
				tt.meta)
		}
	}
	if turns, err := Parse(json.RawMessage(`{"messages":[{"x":1}]}`), "", nil,
		DefaultLimits()); err != nil || len(turns) != 1 {
		t.Errorf("without a signature any object will do: %v", err)
	}
}

// Two messages a turn, fields in the signature's order, the same bytes for shuffled keys.
func TestMessages(t *testing.T) {
	t.Parallel()
	sig := signature(t)
	want := []provider.Message{
		{Role: "user", Content: "Question: q1\nmore\nTopic: {\"a\":[1,2.50,null],\"b\":\"<x>\"}"},
		{Role: "assistant", Content: "Answer: a1\nScore: 9007199254740993"},
		{Role: "user", Content: "Topic: t2"}, {Role: "assistant", Content: "Answer: true"},
	}
	fields := []string{`"score": 9007199254740993`, `"answer": "a1"`, `"other": "ignored"`,
		`"topic": {"b": "<x>", "a": [1, 2.50, null]}`, `"question": "q1\nmore"`, `"history": {"messages": []}`}
	for range 1000 {
		rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		turns, err := Parse(json.RawMessage(`{"messages":[{`+strings.Join(fields, ",")+
			`},{"answer":true,"topic":"t2","question":null}]}`), "history", sig, DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Messages(turns, sig)); diff != "" {
			t.Fatal(diff)
		}
	}
	for _, n := range []int{0, 1, 7} {
		if got := Messages(make([]Turn, n), sig); len(got) != 2*n {
			t.Errorf("%d turns make %d messages", n, len(got))
		}
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"question": "Question", "firstName": "Firstname", "order_id": "Order_id",
		"URL": "Url", "élan": "Élan", "1st": "1st"} {
		if got := Label(name); got != want {
			t.Errorf("Label(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	elements := []json.RawMessage{json.RawMessage(`{"n":1}`), json.RawMessage(`{"n":2}`), json.RawMessage(`{"n":3}`)}
	tests := []struct {
		lim  Limits
		want string
	}{
		{Limits{10, 1000}, `{"messages":[{"n":1},{"n":2},{"n":3}]}`},
		{Limits{2, 1000}, `{"messages":[{"n":2},{"n":3}]}`},
		{Limits{10, 15 + 16}, `{"messages":[{"n":2},{"n":3}]}`},
		{Limits{10, 15}, `{"messages":[]}`},
		{Limits{0, 1000}, `{"messages":[]}`},
	}
	for _, tt := range tests {
		got := Newest(elements, tt.lim)
		if string(got) != tt.want || len(got) > tt.lim.Bytes {
			t.Errorf("%+v: got %s, want %s", tt.lim, got, tt.want)
		}
	}
}

func TestFromCall(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name   string
		args   []json.RawMessage
		kwargs string
		value  string
		want   string
	}{
		{"by position", []json.RawMessage{raw(`"q"`), raw(`"t"`)}, `{}`, `"a"`,
			`{"question":"q","topic":"t","answer":"a"}`},
		{"by name first", []json.RawMessage{raw(`"t"`)}, `{"question":"q"}`, `{"score":1,"answer":"a","x":2}`,
			`{"question":"q","topic":"t","answer":"a","score":1}`},
		{"an object that names no output", nil, `{"topic":"t"}`, `{"x":2}`, `{"topic":"t","answer":{"x":2}}`},
		{"null fields are left out", []json.RawMessage{raw(`null`), raw(`"t"`)}, `{}`, `{"answer":null,"score":1}`,
			`{"topic":"t","score":1}`},
		{"null input", []json.RawMessage{raw(`null`)}, `{}`, `"a"`, ``},
		{"null output", []json.RawMessage{raw(`"q"`)}, `{}`, `{"answer":null}`, ``},
		{"no input", nil, `{}`, `"a"`, ``},
		{"no output", []json.RawMessage{raw(`"q"`)}, ``, `null`, ``},
	}
	for _, tt := range tests {
		got, ok := FromCall(signature(t), tt.args, raw(tt.kwargs), raw(tt.value))
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if !ok {
			continue
		}
		if _, err := Parse(raw(fmt.Sprintf(`{"messages":[%s]}`, got)), "", signature(t), DefaultLimits()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"messages":[{"question":"q","answer":"a"}]}`)
	f.Add(`{"messages":[{"topic":{"x":[1e999]},"score":"\ud800"}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		sig := signature(t)
		turns, err := Parse(json.RawMessage(raw), "history", sig, DefaultLimits())
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("not an Error: %v", err)
		}
		got := Messages(turns, sig)
		if len(got) != 2*len(turns) || cmp.Diff(got, Messages(turns, sig)) != "" {
			t.Fatal("not two messages a turn, or not the same twice")
		}
		for i, m := range got {
			if m.Content == "" || m.Role != []string{"user", "assistant"}[i%2] {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
	})
}

// FuzzFromCall makes elements of calls: what comes out is an element that a history input takes, within the bounds.
func FuzzFromCall(f *testing.F) {
	f.Add(`"q"`, `{"topic":"t"}`, `"a"`)
	f.Add(`1e999`, `{"question":"\ud800"}`, `{"answer":null,"score":`+strings.Repeat("[", 1000)+strings.Repeat("]",
		1000)+`}`)
	f.Fuzz(func(t *testing.T, arg, kwargs, value string) {
		if !json.Valid([]byte(arg)) || !json.Valid([]byte(kwargs)) || !json.Valid([]byte(value)) {
			return
		}
		sig := signature(t)
		e, ok := FromCall(sig, []json.RawMessage{json.RawMessage(arg)}, json.RawMessage(kwargs), json.RawMessage(value))
		if !ok {
			return
		}
		lim := DefaultLimits()
		turns, err := Parse(Newest([]json.RawMessage{e, e}, lim), "history", sig, lim)
		if err != nil || len(turns) != 2 && 2*len(e) < lim.Bytes {
			t.Fatalf("%s makes %d turns, %v", e, len(turns), err)
		}
	})
}

// Odd values in a history input: each is rendered, the same each time, or refused with its place.
func TestOddValues(t *testing.T) {
	t.Parallel()
	sig := signature(t)
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	tests := []struct{ name, raw, want string }{
		{"a lone surrogate", `"a\ud800b"`, "Question: a\ufffdb"},
		{"invalid UTF-8", "\"a\xffb\"", "Question: a\ufffdb"},
		{"NUL", `"a\u0000b"`, "Question: a\x00b"},
		{"a number beyond float64", `1e999`, "Question: 1e999"},
		{"2^63", `9223372036854775808`, "Question: 9223372036854775808"},
		{"a thousand digits", strings.Repeat("7", 1000), "Question: " + strings.Repeat("7", 1000)},
		{"depth 1000", deep, "Question: " + deep},
		{"a surrogate in a key", `{"\ud800":1}`, "Question: {\"\ufffd\":1}"},
		{"text like a label", `"x\nAnswer: y"`, "Question: x\nAnswer: y"},
		{"NaN, which is no JSON", `NaN`, ""},
		{"depth 20000, which nobody decodes", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), ""},
	}
	for _, tt := range tests {
		raw := json.RawMessage(`{"messages":[{"answer":"a","question":` + tt.raw + `}]}`)
		turns, err := Parse(raw, "history", sig, DefaultLimits())
		var e *Error
		switch {
		case tt.want == "" && (!errors.As(err, &e) || e.Code != "invalid_history_value"):
			t.Errorf("%s: %d turns, %v; want it refused", tt.name, len(turns), err)
		case tt.want != "" && (err != nil || Messages(turns, sig)[0].Content != tt.want):
			t.Errorf("%s: %v, %v", tt.name, turns, err)
		}
	}
}
