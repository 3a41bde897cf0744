package predict

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const withHistory = `{"instructions":"Answer the question.","inputs":[{"name":"question"},{"name":"history","type":"history"}],"outputs":[{"name":"answer","type":"string"}]}`

func request(t testing.TB, signature, inputs string) Request {
	t.Helper()
	s, err := contract.ParseSignature(json.RawMessage(signature))
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Signature: s, Model: "scripted"}
	if err := json.Unmarshal([]byte(inputs), &r.Inputs); err != nil {
		t.Fatal(err)
	}
	return r
}

func start(t *testing.T, replies ...openaitest.Reply) (*provider.OpenAI, *openaitest.Server) {
	t.Helper()
	s := openaitest.New()
	t.Cleanup(s.Close)
	s.Answer("", "", replies...)
	o := provider.DefaultOpenAIOptions()
	o.BaseURL, o.RetryInterval = s.URL, 1
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func text(contents ...string) []openaitest.Reply {
	var out []openaitest.Reply
	for _, c := range contents {
		if c == "" {
			out = append(out, openaitest.Reply{Message: map[string]any{"role": "assistant", "content": ""}})
			continue
		}
		out = append(out, openaitest.Reply{Content: c})
	}
	return out
}

// The example of section 8 of the design, over HTTP.
func TestExample(t *testing.T) {
	t.Parallel()
	p, s := start(t, text("Answer: ok")...)
	r := request(t, withHistory,
		`{"question": "current", "history": {"messages": [{"question": "q1", "answer": "a1"}]}}`)
	got, err := Run(t.Context(), p, r)
	if err != nil || string(got.JSON) != `{"answer":"ok"}` || got.Attempts != 1 || got.Usage.ModelRequests != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := []any{map[string]any{"role": "system", "content": got.Messages[0].Content},
		map[string]any{"role": "user", "content": "Question: q1"},
		map[string]any{"role": "assistant", "content": "Answer: a1"},
		map[string]any{"role": "user", "content": "Question: current"}}
	if diff := cmp.Diff(want, s.Requests()[0].Body["messages"]); diff != "" {
		t.Error(diff)
	}
}

// Seed 002: no history, null and an empty one give the same bytes as a signature without the field. A history only adds
// messages between the first and the last.
func TestHistoryChangesNothingElse(t *testing.T) {
	t.Parallel()
	without := request(t, `{"instructions":"Answer the question.","inputs":[{"name":"question"}],"outputs":[{"name":"answer","type":"string"}]}`, `{"question":"current <x>"}`)
	plain, err := Messages(without)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{``, `,"history":null`, `,"history":{"messages":[]}`} {
		got, err := Messages(request(t, withHistory, `{"question":"current <x>"`+h+`}`))
		if diff := cmp.Diff(plain, got); err != nil || diff != "" {
			t.Errorf("with %q: %v %s", h, err, diff)
		}
	}
	for _, n := range []int{1, 2, 7} {
		elements := strings.TrimSuffix(strings.Repeat(`{"answer":"marker","question":"marker"},`, n), ",")
		got, err := Messages(request(t, withHistory, `{"question":"current <x>","history":{"messages":[`+elements+
			`]}}`))
		if err != nil || len(got) != len(plain)+2*n || got[0] != plain[0] || got[len(got)-1] != plain[len(plain)-1] {
			t.Fatalf("%d turns: %v, %d messages", n, err, len(got))
		}
		for i, m := range got[1 : len(got)-1] {
			if m.Role != []string{"user", "assistant"}[i%2] || !strings.Contains(m.Content, "marker") {
				t.Errorf("message %d is %+v", i+1, m)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	signature := `{"instructions":"Judge the review.","inputs":[{"name":"review","type":"string","description":"as the\n customer wrote it"},{"name":"tags","type":"array"},{"name":"history","type":"history"}],
		"outputs":[{"name":"mood"},{"name":"stars","type":"integer","description":"1 to 5"},{"name":"details","type":"object"}]}`
	for _, adapter := range []string{adapterLines, adapterJSON, adapterJSONSchema} {
		r := request(t, signature,
			`{"tags":["b","a"],"review":"Good.\nVery good.","history":{"messages":[{"stars":2,"mood":"bad","review":"Meh."}]}}`)
		r.Adapter = adapter
		r.Demos = []json.RawMessage{json.RawMessage(
			`{"review":"Great","mood":"good","stars":5,"details":{"z":1,"a":"<b>"}}`)}
		messages, err := Messages(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, m := range messages {
			fmt.Fprintf(&b, "==== %s ====\n%s\n", m.Role, m.Content)
		}
		if adapter == adapterJSONSchema {
			fmt.Fprintf(&b, "==== schema ====\n%s\n", Schema(r.Signature))
		}
		path := filepath.Join("testdata", adapter+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s differs; look at it, then run go test -update\n%s", path, b.String())
		}
	}
}

// Faults are found before any model request.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, signature, inputs, code, pointer string }{
		{"history is a string", withHistory, `{"question":"q","history":"x"}`, "invalid_history_value",
			"/inputs/history"},
		{"bad element", withHistory, `{"question":"q","history":{"messages":[{"question":"q","answer":"a"},{}]}}`,
			"invalid_history_element", "/inputs/history/messages/1"},
		{"missing input", withHistory, `{}`, "invalid_input", "/inputs/question"},
		{"unknown input", withHistory, `{"question":"q","qestion":"q"}`, "invalid_input", "/inputs/qestion"},
		{"wrong type", `{"inputs":[{"name":"n","type":"integer"}],"outputs":[{"name":"a"}]}`, `{"n":1.5}`,
			"invalid_input", "/inputs/n"},
		{"too many turns", withHistory, `{"question":"q","history":{"messages":[` +
			strings.Repeat(`{"question":"q","answer":"a"},`, 1000) + `{"question":"q","answer":"a"}]}}`, "too_large",
			"/inputs/history/messages"},
		{"too long", withHistory, `{"question":"` + strings.Repeat("x", 1<<20) + `"}`, "too_large", "/inputs"},
	}
	p, s := start(t, text("Answer: never")...)
	for _, tt := range tests {
		_, err := Run(t.Context(), p, request(t, tt.signature, tt.inputs))
		var e *agent.InputError
		if !errors.As(err, &e) || e.Code != tt.code || e.Pointer != tt.pointer || e.Detail == "" {
			t.Errorf("%s: got %v, want %s at %s", tt.name, err, tt.code, tt.pointer)
		}
	}
	bad := request(t, withHistory, `{"question":"q"}`)
	bad.Demos = []json.RawMessage{json.RawMessage(`{"question":"q"}`)}
	var e *agent.InputError
	if _, err := Run(t.Context(), p, bad); !errors.As(err, &e) || e.Pointer != "/demos/0" {
		t.Errorf("a bad demo: got %v", err)
	}
	bad.Demos, bad.Adapter = nil, "yaml"
	if _, err := Run(t.Context(), p, bad); !errors.As(err, &e) || e.Pointer != "/adapter" {
		t.Errorf("a bad adapter: got %v", err)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d model requests were made", n)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	signature := `{"inputs":[{"name":"q"}],"outputs":[{"name":"answer"},{"name":"count","type":"integer"},{"name":"sure","type":"boolean"},{"name":"list","type":"array"},{"name":"extra","type":"any"}]}`
	full := `{"answer":"a","count":3,"sure":true,"list":[1],"extra":null}`
	tests := []struct{ name, reply, want, reason string }{
		{"lines", "Answer: a\nCount: 3\nSure: True\nList: [1]\nExtra: null", full, ""},
		{"lines in another order and case, with prose before",
			"Here you are:\nCOUNT: 3\nextra: null\n**List:** [1]\nSure: true\n answer : a\n", full, ""},
		{"several lines", "Answer: a\nb: c\n\nd\nCount: 3\nSure: false\nList: [\n 1\n]\nExtra: some text",
			`{"answer":"a\nb: c\n\nd","count":3,"sure":false,"list":[1],"extra":"some text"}`, ""},
		{"JSON", full, full, ""},
		{"JSON in a fence, keys in another case",
			"```json\n{\"Answer\": \"a\", \"count\": 3.0, \"sure\": true, \"list\": [ 1 ], \"EXTRA\": null, \"more\": 1}\n```", full, ""},
		{"big integers are exact", strings.Replace(full, "3", "9007199254740993", 1),
			strings.Replace(full, "3", "9007199254740993", 1), ""},
		{"empty", " \n", "", "it is empty"},
		{"prose", "I do not know.", "", "it lacks Answer, Count, Sure, List, Extra"},
		{"missing", "Answer: a\nCount: 3", "", "it lacks Sure, List, Extra"},
		{"not whole", "Answer: a\nCount: 3.5\nSure: true\nList: []\nExtra: 1", "",
			"Count must be of type integer, got number"},
		{"text for a number", "Answer: a\nCount: three\nSure: true\nList: []\nExtra: 1", "",
			"Count must be of type integer, got string"},
		{"JSON in prose, the last", `I first thought {"answer": "z", "count": 1}, but: ` + full + " That is all.", full,
			""},
		{"JSON as Python writes it", "{'answer': 'a', 'count': 3, 'sure': True, 'list': [1,], 'extra': None}", full,
			""},
		{"JSON in the marks of a call", `<tool_call>{"name": "answer", "arguments": ` + full + `}</tool_call>`, full,
			""},
		{"JSON in two fences", "```json\n{\"answer\": \"z\"}\n```\nBetter:\n```json\n" + full + "\n```", full, ""},
		{"lines in a list", "- **Answer:** a\n- **Count:** 3\n- Sure: true\n- List: [1]\n- Extra: null", full, ""},
		{"a list within an answer is no label", "Answer: a\n- Count: 7\nCount: 3\nSure: true\nList: [1]\nExtra: null",
			strings.Replace(full, `"a"`, `"a\n- Count: 7"`, 1), ""},
		{"lines with values as Python writes them",
			"Answer: a\nCount: **3**\nSure: TRUE\nList: ```python\n[1,]\n```\nExtra: None", full, ""},
		{"other colons", "Answer：a\nCount：3\nSure: true\nList: [1]\nExtra: null", full, ""},
		{"a broken object", `{"answer": "a", "count": 3`, "", "it lacks Answer, Count, Sure, List, Extra"},
		{"JSON with a number for a string", strings.Replace(full, `"a"`, "5", 1), "",
			"Answer must be of type string, got number"},
	}
	s := request(t, signature, `{"q":"x"}`).Signature
	for _, tt := range tests {
		out, reason := Read(s, tt.reply)
		if reason != tt.reason {
			t.Errorf("%s: got reason %q, want %q", tt.name, reason, tt.reason)
			continue
		}
		if got := string(object(s.Outputs, out)); tt.want != "" && got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An answer to Ask needs no label. A label that is present is not part of the answer.
func TestBareAnswer(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"ok":                                    "ok",
		"It is 5: no more.\n\nAnd no less.":     "It is 5: no more.\n\nAnd no less.",
		`{"total": 5}`:                          `{"total": 5}`,
		"Answer: ok":                            "ok",
		"**Answer:** ok":                        "ok",
		`{"answer": "ok"}`:                      "ok",
		"<think>\nAnswer: no\n</think>\nok":     "ok",
		"Answer: no\n</think>\n\nok":            "ok",
		"[THINK]{\"answer\": \"no\"}[/THINK]ok": "ok",
		"```json\n{\"answer\": \"ok\"}\n```":    "ok",
	} {
		p, _ := start(t, text(reply)...)
		r := request(t, `{"instructions":"Say it.","inputs":[{"name":"input"}],"outputs":[{"name":"answer"}]}`,
			`{"input":"x"}`)
		r.Bare = true
		got, err := Run(t.Context(), p, r)
		var answer string
		if err == nil {
			err = json.Unmarshal(got.Outputs["answer"], &answer)
		}
		if err != nil || answer != want || got.Attempts != 1 {
			t.Errorf("%q: got %q after %d attempts, %v", reply, answer, got.Attempts, err)
		}
	}
	p, s := start(t, openaitest.Reply{Content: "Answer: half of a th", Finish: "length"})
	_, err := Run(t.Context(), p, request(t, withHistory, `{"question":"q"}`))
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Reason != provider.ReasonCutOff ||
		!strings.Contains(failed.Message, "--max-completion-tokens") || len(s.Requests()) != 1 {
		t.Errorf("a reply that was cut off: %v", err)
	}
}

// Outputs may be nested. Their schema is shown to the model, sent to a server that can enforce it, and checked. A reply
// that violates it is requested once more.
func TestNestedOutputs(t *testing.T) {
	t.Parallel()
	signature := `{"inputs":[{"name":"text"}],"outputs":[
		{"name":"mood","type":"string","schema":{"enum":["good","bad"]}},
		{"name":"items","schema":{"type":"array","minItems":1,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"price":{"type":"number"}}}}}]}`
	for name, c := range map[string]struct{ adapter, first, second string }{
		"lines": {adapterLines, "Mood: fine\nItems: []", "Mood: good\nItems: [{\"name\": \"milk\", \"price\": 1.5}]"},
		"json": {adapterJSONSchema, `{"mood":"good","items":[{"price":1}]}`,
			"```json\n{\"mood\": \"good\", \"items\": [{\"name\": \"milk\", \"price\": 1.5}]}\n```"},
	} {
		p, s := start(t, text(c.first, c.second)...)
		r := request(t, signature, `{"text":"Milk, 1.50"}`)
		r.Adapter = c.adapter
		got, err := Run(t.Context(), p, r)
		if err != nil || string(got.JSON) != `{"mood":"good","items":[{"name":"milk","price":1.5}]}` ||
			got.Attempts != 2 {
			t.Errorf("%s: got %s after %d attempts, %v", name, got.JSON, got.Attempts, err)
			continue
		}
		if sent := s.Requests()[1].Text; !strings.Contains(sent, "breaks its schema") ||
			!strings.Contains(got.Messages[0].Content, `keeps the JSON Schema {"enum":["good","bad"]}`) {
			t.Errorf("%s: the model was sent %s", name, sent)
		}
	}
	held := string(Schema(request(t, signature, `{"text":"x"}`).Signature))
	if !strings.Contains(held, `"mood":{"enum":["good","bad"],"type":"string"}`) ||
		!strings.Contains(held, `"required":["name"]`) {
		t.Errorf("a server gets the schema %s", held)
	}
	bad := request(t, signature, `{"text":"x"}`)
	bad.Demos = []json.RawMessage{json.RawMessage(`{"text":"Bread","mood":"bad","items":[{"name":"bread"}]}`),
		json.RawMessage(`{"text":"Milk","mood":"ugly"}`)}
	var e *agent.InputError
	if _, err := Messages(bad); !errors.As(err, &e) || e.Pointer != "/demos/1/mood" {
		t.Errorf("a demo that breaks the schema: %v", err)
	}
}

// A reply that does not fit is requested once more, with the reason.
func TestOneRepair(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		replies []openaitest.Reply
		reason  string // "" is an answer
	}{
		{"prose, then right", text("dunno", "Answer: ok"), ""},
		{"nothing, then right", text("", "Answer: ok"), ""},
		{"prose twice", text("dunno"), "it lacks Answer"},
		{"nothing twice", text(""), "it is empty"},
	}
	for _, tt := range tests {
		p, s := start(t, tt.replies...)
		got, err := Run(t.Context(), p, request(t, withHistory, `{"question":"q"}`))
		if len(s.Requests()) != 2 || !strings.Contains(s.Requests()[1].Text, "does not fit: it") {
			t.Errorf("%s: %d requests", tt.name, len(s.Requests()))
		}
		var unfit *ReplyError
		switch {
		case tt.reason == "" && (err != nil || string(got.JSON) != `{"answer":"ok"}` || got.Attempts != 2 ||
			got.Usage.ModelRequests != 2):
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		case tt.reason != "" && (!errors.As(err, &unfit) || unfit.Reason != tt.reason ||
			unfit.Usage.ModelRequests != 2):
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func TestProviderFails(t *testing.T) {
	t.Parallel()
	p, _ := start(t, openaitest.Reply{Content: "dunno"}, openaitest.Reply{Status: 401})
	_, err := Run(t.Context(), p, request(t, withHistory, `{"question":"q"}`))
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Type != agent.ErrProvider || failed.Usage.ModelRequests != 2 {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	if _, err := Run(ctx, p, request(t, withHistory, `{"question":"q"}`)); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestSchemaIsSent(t *testing.T) {
	t.Parallel()
	p, s := start(t, text(`{"answer":"ok"}`)...)
	r := request(t, withHistory, `{"question":"q"}`)
	r.Adapter = adapterJSONSchema
	if _, err := Run(t.Context(), p, r); err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(s.Requests()[0].Body["response_format"]); !strings.Contains(string(b), `"required":["answer"]`) {
		t.Errorf("got %s", b)
	}
}

// The element that a prediction stores in the session is valid input for the next one.
func TestElementRoundTrip(t *testing.T) {
	t.Parallel()
	r := request(t, withHistory, `{"question":"q","history":{"messages":[]}}`)
	e := history.Element(&r.Signature, r.Inputs, map[string]json.RawMessage{"answer": json.RawMessage(`"a"`)})
	if string(e) != `{"question":"q","answer":"a"}` {
		t.Fatalf("got %s", e)
	}
	r.Inputs["history"] = history.Newest([]json.RawMessage{e, e}, history.DefaultLimits())
	if m, err := Messages(r); err != nil || len(m) != 6 {
		t.Errorf("got %d messages, %v", len(m), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("Answer: a\nScore: 1")
	f.Add("```json\n{\"answer\":\"a\",\"score\":1}\n```")
	s, err := contract.ParseSignature(json.RawMessage(
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"answer"},{"name":"score","type":"number"}]}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		out, reason := Read(s, reply)
		if reason == "" && !json.Valid(object(s.Outputs, out)) {
			t.Fatalf("%q gives %s", reply, object(s.Outputs, out))
		}
	})
}

// For a thousand orders of the same keys, in inputs, history and demos, the bytes are the same.
func TestShuffles(t *testing.T) {
	t.Parallel()
	signature := `{"inputs":[{"name":"review"},{"name":"meta"},{"name":"past","type":"history"}],"outputs":[{"name":"mood"},{"name":"stars","type":"integer"}]}`
	shuffled := func(members ...string) string {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ", ") + "}"
	}
	first := ""
	for range 1000 {
		turn := shuffled(`"review":"r1"`, `"meta":`+shuffled(`"b":1.50`, `"a":[{}]`, `"c":"<é>"`), `"mood":"bad"`,
			`"stars":2`, `"other":1`)
		r := request(t, signature, shuffled(`"review":"r"`, `"meta":`+shuffled(`"z":`+shuffled(`"y":null`, `"x":1e2`),
			`"n":9007199254740993`), `"past":{"messages":[`+turn+`]}`))
		r.Demos = []json.RawMessage{json.RawMessage(shuffled(`"stars":5`, `"mood":"good"`, `"review":"r0"`))}
		messages, err := Messages(r)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%q", messages)
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("got\n%s\nafter\n%s", got, first)
		}
	}
}
