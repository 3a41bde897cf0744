// Package prompt writes what a model is asked: the messages of a request for a program. The texts are templates
// (system.tmpl, user.tmpl) with golden renderings in testdata.
//
// The size of a prompt is bounded whatever the input, except for the dialect, which is ours. The same input gives the
// same bytes. The last message ends with the elements role, method, args and kwargs, so that the last ones of these
// names in a request are always ours: what models, programs and clients wrote stands before them, or cannot spell a tag
// (JSON is escaped as encoding/json does; role and method have &, < and > as entities, other text each < that could open
// a tag; failed code alone is verbatim).
package prompt

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Version is the prompt's version, noted with each artifact. It is metadata: an artifact forged with another version is
// as good as before.
const Version = "2026-11-22.v3"

// KindRegenerate is a forge after programs that failed. Requests of it count as provider.KindForge.
const KindRegenerate = "regenerate"

// Bounds of what goes into a prompt, in bytes where nothing else is said.
const (
	MaxArgs       = 16 << 10 // of args, and of kwargs
	MaxFailedCode = 64 << 10
	MaxTools      = 12 // known tools, where the input holds more
	maxPurpose    = 4 << 10
	maxContract   = 16 << 10 // of each JSON part
	maxMessage    = 4 << 10
	maxPatterns   = 4
	maxFeedback   = 8
	maxKeys       = 40
	maxShape      = 300 // of a context key
	maxLines      = 5   // of failed code that are shown again
	maxEvidence   = 12 << 10
	maxTurn       = 500 // characters of a turn's arguments, and of its value
)

// Input is what a request tells a model. Secrets in Args and Kwargs are masked already.
type Input struct {
	Kind         string // provider.KindForge, provider.KindRepair or KindRegenerate
	Role, Method string
	Args         []json.RawMessage
	Kwargs       json.RawMessage // an object; nil is {}
	Depth        int
	Contract     *agent.Contract   // nil for none
	KnownTools   []Tool            // best first
	Patterns     []string          // capabilities that keep coming back
	Dialect      string            // what the Go of programs may be: allow.Dialect()
	ContextKeys  map[string]string // by key, what Shape says of its value
	HistoryInput bool              // the call brought a history input
	OneOff       bool              // the method takes free text (ask, chat ...): its programs are not kept
	Wish         string            // why an operator asked for a new program; empty when nobody did

	HistoryCount  int             // of records in the session
	HistoryLatest []HistoryRecord // at most 3 are shown, the last ones
	Turns         []Turn          // of a method that takes free text: what was said before, oldest first

	Evidence string    // what is known beside the failed code: data, secrets masked, at most 12 KiB
	Examples []Example // what people expect, at most 3

	Earlier string // of a forge, the program whose answers the new one must give again; empty where there is none

	FailedCode      string // of a repair, verbatim
	FailureClass    string
	FailureMessage  string
	FailureMetadata map[string]any // details, such as those of a contract violation
	Feedback        []string       // of earlier attempts of this call, oldest first
}

// Example is an expected answer that a person fixed; Args and Expect are JSON.
type Example struct {
	Args, Kwargs, Context, Expect json.RawMessage
	Note                          string
}

// Tool is a known tool.
type Tool struct {
	Role        string
	Purpose     string
	Methods     []string
	Deliverable json.RawMessage
}

// HistoryRecord is the summary of a record: never its arguments or value.
type HistoryRecord struct {
	CallID        string `json:"call_id"`
	Speaker       string `json:"speaker"`
	MethodName    string `json:"method_name"`
	OutcomeStatus string `json:"outcome_status"`
	ErrorType     string `json:"error_type,omitempty"`
}

// Turn is an earlier call of the session with what it gave, secrets masked. Each part is shown up to 500 characters.
type Turn struct {
	Method       string
	Args, Kwargs json.RawMessage // a list, an object
	Value        json.RawMessage // nil when the call failed, or when its value is not kept any more
	Failure      string          // type and message of a call that failed
}

//go:embed system.tmpl
var systemText string

//go:embed user.tmpl
var userText string

// Program renders the request for a program: a system message and a user message.
func Program(in Input) []provider.Message {
	return []provider.Message{
		{Role: "system", Content: render("system", systemText, struct {
			Depth   int
			Dialect string
		}{min(max(in.Depth, 0), 2), strings.TrimSpace(in.Dialect)})},
		{Role: "user", Content: render("user", userText, fill(in))},
	}
}

// render panics only on a fault of our own templates, which the golden tests render with every part filled and empty.
func render(name, text string, data any) string {
	t, err := template.New(name).Parse(text)
	if err != nil {
		panic(fmt.Sprintf("prompt: %v", err))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		panic(fmt.Sprintf("prompt: %v", err))
	}
	return strings.TrimSpace(b.String())
}

// filled is the user template's data: texts, bounded and escaped.
type filled struct {
	Kind, Role, Method, Args, Kwargs, Note string
	Contract                               *filledContract
	KnownTools                             []filledTool
	Patterns                               []string
	HistoryCount                           int
	HistoryLatest                          []string
	Turns                                  []string
	ContextKeys                            []string
	Wish                                   string
	HistoryInput, OneOff                   bool
	Feedback                               []string
	Evidence                               string
	Examples                               []string
	FailedCode                             string
	FailureClass                           string
	FailureMessage                         string
	FailedLines                            string
	Earlier                                string
	FailureMetadata                        string
	FailureAdvice                          string
}

type filledContract struct{ Purpose, Deliverable, Acceptance, FailurePolicy, Signature string }

type filledTool struct{ Role, Own, Purpose, Methods, Deliverable string }

func fill(in Input) filled {
	f := filled{Kind: in.Kind, Role: verbatim(in.Role, 1000), Method: verbatim(in.Method, 1000), Contract: fillContract(in.Contract),
		HistoryCount: in.HistoryCount, ContextKeys: contextKeys(in.ContextKeys), HistoryInput: in.HistoryInput, OneOff: in.OneOff, Wish: plain(in.Wish, 800)}
	if in.Kind == provider.KindForge && (len(in.Feedback) > 0 || in.Wish != "") {
		f.Kind = KindRegenerate
	}
	args, kwargs := in.Args, in.Kwargs
	if args == nil {
		args = []json.RawMessage{}
	}
	if len(kwargs) == 0 {
		kwargs = json.RawMessage("{}")
	}
	var cutArgs, cutKwargs bool
	f.Args, cutArgs = preview(args, MaxArgs, "[]")
	f.Kwargs, cutKwargs = preview(kwargs, MaxArgs, "{}")
	f.Note = note(f.Args+f.Kwargs, cutArgs || cutKwargs)
	if in.Depth >= 2 {
		in.KnownTools = nil // a Worker is told to hand nothing on
	}
	for _, t := range in.KnownTools[:min(len(in.KnownTools), MaxTools)] {
		known := fillTool(t)
		if t.Role == in.Role {
			// Its methods are siblings, not whom to call. Its contract stands above.
			known = filledTool{Role: known.Role, Own: ", your own role", Methods: known.Methods}
		}
		f.KnownTools = append(f.KnownTools, known)
	}
	for _, p := range in.Patterns[:min(len(in.Patterns), maxPatterns)] {
		f.Patterns = append(f.Patterns, plain(p, 200))
	}
	for _, r := range in.HistoryLatest[max(0, len(in.HistoryLatest)-3):] {
		f.HistoryLatest = append(f.HistoryLatest, encoded(r, 1200))
	}
	for _, t := range in.Turns {
		f.Turns = append(f.Turns, fillTurn(t))
	}
	f.Evidence = visible(strings.TrimSpace(in.Evidence), maxEvidence)
	for _, x := range in.Examples {
		f.Examples = append(f.Examples, fillExample(x))
	}
	earlier := news(in)
	for _, text := range earlier[max(0, len(earlier)-maxFeedback):] {
		f.Feedback = append(f.Feedback, plain(text, 800))
	}
	if in.Kind == provider.KindRepair {
		fillFailure(&f, in)
	} else {
		f.Earlier = earlierProgram(in.Earlier)
	}
	return f
}

// fillExample renders an example in one line.
func fillExample(x Example) string {
	line := "args " + encoded(x.Args, 1200)
	if len(x.Kwargs) > len("{}") {
		line += " kwargs " + encoded(x.Kwargs, 1200)
	}
	if len(x.Context) > len("{}") {
		line += " context " + encoded(x.Context, 1200)
	}
	line += " must give " + encoded(x.Expect, 1200)
	if x.Note != "" {
		line += " (" + plain(x.Note, 300) + ")"
	}
	return line
}

// fillTurn renders a turn in one line.
func fillTurn(t Turn) string {
	part := func(raw json.RawMessage) string {
		text, err := json.Marshal(raw)
		if err != nil {
			return "..."
		}
		if utf8.RuneCount(text) > maxTurn {
			text = []byte(string([]rune(string(text))[:maxTurn]) + "…")
		}
		return plain(string(text), 8*maxTurn)
	}
	line := plain(t.Method, 200) + " args " + part(t.Args)
	if len(t.Kwargs) > len("{}") {
		line += " kwargs " + part(t.Kwargs)
	}
	switch {
	case t.Failure != "":
		return line + " failed: " + plain(t.Failure, maxTurn)
	case t.Value == nil:
		return line + " gave a value that is not kept any more"
	}
	return line + " gave " + part(t.Value)
}

// earlierProgram is code that cannot make a forge look like a repair; else it is verbatim.
func earlierProgram(code string) string {
	code = cut(strings.TrimRight(code, "\n"), MaxFailedCode)
	return regexp.MustCompile(`<(/?(?:failed|failure|earlier)_\w+>)`).ReplaceAllString(code, "&lt;$1")
}

// news is the feedback that the request does not tell elsewhere: the failure that a repair is about is told in full.
func news(in Input) []string {
	if len(in.Feedback) == 0 || in.Kind != provider.KindRepair {
		return in.Feedback
	}
	const enough = 200 // the feedback may be clipped
	message, _, _ := strings.Cut(strings.TrimSpace(in.FailureMessage), "\n")
	last := len(in.Feedback) - 1
	if message != "" && strings.Contains(in.Feedback[last], message[:min(len(message), enough)]) {
		return in.Feedback[:last]
	}
	return in.Feedback
}

func fillFailure(f *filled, in Input) {
	f.FailedCode = strings.TrimRight(in.FailedCode, "\n")
	if len(f.FailedCode) > MaxFailedCode {
		f.FailedCode = cut(f.FailedCode, MaxFailedCode) + "\n// ... the rest is left out"
	}
	if strings.TrimSpace(f.FailedCode) == "" {
		f.FailedCode = "// no program"
	}
	f.FailureClass = plain(in.FailureClass, 100)
	f.FailureMessage = visible(once(strings.TrimSpace(in.FailureMessage)), maxMessage)
	f.FailedLines = pointed(in.FailureMessage, in.FailedCode)
	if m := telling(in.FailureMetadata); len(m) > 0 {
		f.FailureMetadata = encoded(m, maxMessage)
	}
	f.FailureAdvice = advice(in.FailureClass, in.FailureMetadata)
}

// once leaves out lines that repeat the end of the line before: a compiler's first error stands in the message and again
// in the list of all of them.
func once(message string) string {
	lines := strings.Split(message, "\n")
	kept := slices.Clone(lines[:1])
	for i, line := range lines[1:] {
		if text := strings.TrimSpace(line); text == "" || !strings.HasSuffix(lines[i], text) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// pointed quotes the lines of the failed code that the message points at, with their numbers: models count badly.
func pointed(message, code string) string {
	lines := strings.Split(code, "\n")
	var out []string
	shown := map[int]bool{}
	for _, m := range regexp.MustCompile(`program\.go:(\d{1,6})`).FindAllStringSubmatch(message, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > len(lines) || shown[n] || len(out) == maxLines {
			continue
		}
		shown[n] = true
		if line := strings.TrimSpace(lines[n-1]); line != "" {
			out = append(out, fmt.Sprintf("%d: %s", n, visible(line, 200)))
		}
	}
	return strings.Join(out, "\n")
}

// telling is the metadata without what says nothing to a model.
func telling(metadata map[string]any) map[string]any {
	out := make(map[string]any, len(metadata))
	for k, v := range metadata {
		if list, ok := v.([]any); ok && len(list) == 0 || v == nil || k == "detail" || k == "fixture" || k == "example" {
			continue
		}
		if list, ok := v.([]string); ok && len(list) == 0 {
			continue
		}
		out[k] = v
	}
	return out
}

// advice says what the failure's class asks for, where the message alone may not.
func advice(class string, metadata map[string]any) string {
	if _, ok := metadata["mismatch"]; ok {
		return "The returned value broke the deliverable. Make the program deliver what the contract asks for; where that is impossible for an input, return recurgent.Fail with the reason. Do not pad the value with invented data."
	}
	if _, ok := metadata["example"]; ok {
		return "The program does not give the answer that a person fixed for an example. Every example must hold."
	}
	if _, ok := metadata["fixture"]; ok {
		return "The program gives another answer to an earlier call than the one before it gave. Answer that call as before, in the same form, and repair what failed."
	}
	switch class {
	case string(agent.ClassAdaptive):
		return "The data from outside has changed its form. Read the new form, and the old one where that is easy."
	case "stale":
		return "The program worked under an earlier contract. Change what the new contract asks for, and nothing else."
	case "degraded":
		return "The program fails too often. Find what its failures have in common and repair that."
	case "wrong_answer":
		return "The program answers, but wrong. Answer as the person says, for this input and for all that are like it; keep the rest as it is."
	}
	return ""
}

func note(call string, shortened bool) string {
	var notes []string
	if strings.Contains(call, `"[masked]"`) {
		notes = append(notes, `secrets are shown as "[masked]"; the program receives the true values`)
	}
	if shortened {
		notes = append(notes, "long values are shortened here; the program receives them whole")
	}
	return strings.Join(notes, "; ")
}

func fillContract(k *agent.Contract) *filledContract {
	if k.Empty() {
		return nil
	}
	return &filledContract{Purpose: plain(k.Purpose, maxPurpose), Deliverable: part(k.Deliverable), Acceptance: part(k.Acceptance),
		FailurePolicy: part(k.FailurePolicy), Signature: part(k.Signature)}
}

// part renders a JSON part of a contract, or "" when it says nothing.
func part(raw json.RawMessage) string {
	if trimmed := strings.TrimSpace(string(raw)); trimmed == "" || trimmed == "null" {
		return ""
	}
	return encoded(raw, maxContract)
}

func fillTool(t Tool) filledTool {
	methods := make([]string, 0, 8)
	for _, m := range t.Methods[:min(len(t.Methods), 8)] {
		methods = append(methods, plain(m, 60))
	}
	if more := len(t.Methods) - len(methods); more > 0 {
		methods = append(methods, fmt.Sprintf("%d more", more))
	}
	f := filledTool{Role: plain(t.Role, 200), Purpose: plain(t.Purpose, 240), Methods: strings.Join(methods, ", ")}
	if d := part(t.Deliverable); d != "" {
		f.Deliverable = cut(d, 400)
	}
	return f
}

func contextKeys(shapes map[string]string) []string {
	keys := make([]string, 0, len(shapes))
	for k := range shapes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys[:min(len(keys), maxKeys)] {
		out = append(out, plain(k, 60)+": "+plain(shapes[k], maxShape))
	}
	if more := len(keys) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// plain makes text of strangers one bounded line that cannot spell a tag.
func plain(text string, most int) string {
	return visible(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "), most)
}

// visible is plain for text whose white space counts. Characters that nobody sees, such as those that turn the direction
// of writing, are left out, and a < that could open a tag or a marker is an entity; one that compares stays.
func visible(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cf, r) || unicode.IsControl(r)) {
			return -1
		}
		return r
	}, cut(strings.ToValidUTF8(text, "?"), most))
	var b strings.Builder
	for i, r := range text {
		if r == '<' && (i+1 == len(text) || !strings.ContainsRune(" =-0123456789", rune(text[i+1]))) {
			b.WriteString("&lt;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// verbatim is text that test servers and the replay provider read back: every character stays, as an entity where it must.
func verbatim(text string, most int) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(cut(strings.ToValidUTF8(text, "?"), most))
}

// encoded renders v as JSON with <, > and & escaped, and cuts what is too long.
func encoded(v any, most int) string {
	text, _ := preview(v, most, `"..."`)
	return text
}

// preview renders v as JSON of about most bytes: where it would be longer, long strings and lists are shortened, and
// what is left is still JSON. fallback stands for what cannot be encoded.
func preview(v any, most int, fallback string) (text string, shortened bool) {
	b, err := json.Marshal(v)
	if err != nil {
		return fallback, true
	}
	if len(b) <= most {
		return string(b), false
	}
	decoded, err := contract.Decode(b)
	if err != nil {
		return fallback, true
	}
	for room := most / 4; room >= 16; room /= 2 {
		s := &shortener{text: room, items: max(room/16, 3), nodes: most / 8}
		if b, err = json.Marshal(s.value(decoded, 0)); err == nil && len(b) <= most {
			return string(b), true
		}
	}
	return fallback, true
}

// shortener copies a decoded value with its long parts shortened.
type shortener struct {
	text  int // bytes of a string
	items int // elements of a list, members of an object
	nodes int // values that may still be copied
}

func (s *shortener) value(v any, depth int) any {
	if s.nodes--; s.nodes < 0 || depth > 32 {
		return "..."
	}
	switch v := v.(type) {
	case string:
		if len(v) > s.text {
			return cut(v, s.text)
		}
	case json.Number:
		if len(v) > s.text {
			return cut(string(v), s.text)
		}
	case []any:
		out := make([]any, 0, min(len(v), s.items+1))
		for _, e := range v[:min(len(v), s.items)] {
			out = append(out, s.value(e, depth+1))
		}
		if more := len(v) - len(out); more > 0 {
			out = append(out, fmt.Sprintf("... %d more", more))
		}
		return out
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		out := make(map[string]any, min(len(v), s.items+1))
		for _, k := range keys[:min(len(keys), s.items)] {
			out[cut(k, s.text)] = s.value(v[k], depth+1)
		}
		if more := len(keys) - s.items; more > 0 {
			out["..."] = fmt.Sprintf("%d more", more)
		}
		return out
	}
	return v
}

// cut shortens text to about n bytes, at a character's edge, and says by how much.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.ToValidUTF8(text[:n], ""), len(text)-n)
}
