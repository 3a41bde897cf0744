package prompt

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// filled is the data of the user template: texts that are bounded and escaped.
type filled struct {
	Kind, Role, Method, Args, Kwargs, Note string
	Contract                               *filledContract
	KnownTools                             []filledTool
	Connections                            []string
	Patterns                               []string
	Files                                  []filledFile
	TakesFiles                             bool
	HistoryCount                           int
	HistoryLatest                          []string
	Turns                                  []string
	ContextKeys                            []string
	Wish                                   string
	OneOff                                 bool
	Feedback                               []string
	Evidence                               string
	Examples                               []string
	FailedCode                             string
	FailureClass                           string
	FailureMessage                         string
	FailedLines                            string
	Earlier                                string
	Recheck                                *filledRecheck
	FailureMetadata                        string
	FailureAdvice                          string
}

// shownTools returns the known tools that the request shows. There are none at depth 2 and below, where the model is
// instructed not to delegate.
func (in *Input) shownTools() []Tool {
	if in.Depth >= 2 {
		return nil
	}
	return in.KnownTools[:min(len(in.KnownTools), maxTools)]
}

// fill renders the parts of the user message within the bounds.
func fill(in Input, b bounds) filled {
	f := filled{Kind: in.Kind, Role: verbatim(in.Role, 1000), Method: verbatim(in.Method, 1000),
		Contract:     fillContract(in.Contract, b.contract),
		HistoryCount: in.HistoryCount, ContextKeys: contextKeys(in.ContextKeys), OneOff: in.OneOff,
		Wish: plain(in.Wish, 800), TakesFiles: in.TakesFiles || len(in.Files) > 0}
	if in.Kind == provider.KindForge && (len(in.Feedback) > 0 || in.Wish != "") {
		f.Kind = kindRegenerate
	}
	args, kwargs := in.Args, in.Kwargs
	if args == nil {
		args = []json.RawMessage{}
	}
	if len(kwargs) == 0 {
		kwargs = json.RawMessage("{}")
	}
	var cutArgs, cutKwargs bool
	f.Args, cutArgs = preview(args, b.data, "[]")
	f.Kwargs, cutKwargs = preview(kwargs, b.data, "{}")
	f.Note = note(f.Args+f.Kwargs, cutArgs || cutKwargs)
	for _, t := range in.shownTools() {
		known := fillTool(t)
		if t.Role == in.Role {
			// Its methods are siblings rather than tools to call, and its contract is given above.
			known = filledTool{Role: known.Role, Own: ", your own role", Methods: known.Methods}
		}
		f.KnownTools = append(f.KnownTools, known)
	}
	for _, x := range in.Files {
		f.Files = append(f.Files, fillFile(x, b.data))
	}
	for _, c := range in.Connections[:min(len(in.Connections), maxConnected)] {
		f.Connections = append(f.Connections, fillConnection(c))
	}
	for _, p := range in.Patterns[:min(len(in.Patterns), maxPatterns)] {
		f.Patterns = append(f.Patterns, plain(p, 200))
	}
	for _, r := range in.HistoryLatest[max(0, len(in.HistoryLatest)-3):] {
		f.HistoryLatest = append(f.HistoryLatest, encoded(r, 1200))
	}
	for _, t := range in.Turns {
		f.Turns = append(f.Turns, fillTurn(t, min(maxTurn, b.data)))
	}
	f.Evidence = data(strings.TrimSpace(evidence(in.Evidence, in.Owner)), min(maxEvidence, b.data))
	for _, x := range in.Examples {
		f.Examples = append(f.Examples, fillExample(x, min(1200, b.data)))
	}
	earlier := news(&in)
	for _, text := range earlier[max(0, len(earlier)-maxFeedback):] {
		f.Feedback = append(f.Feedback, plain(text, min(800, b.data)))
	}
	switch {
	case in.Kind == provider.KindRepair:
		fillFailure(&f, &in, b)
	case in.Recheck != nil:
		f.Recheck = fillRecheck(in.Recheck, b)
	default:
		f.Earlier = earlierProgram(in.Earlier)
	}
	return f
}

// fillExample renders an example as one line.
func fillExample(x Example, most int) string {
	line := "args " + encoded(x.Args, most)
	if len(x.Kwargs) > len("{}") {
		line += " kwargs " + encoded(x.Kwargs, most)
	}
	if len(x.Context) > len("{}") {
		line += " context " + encoded(x.Context, most)
	}
	line += " must give " + encoded(x.Expect, most)
	if x.Note != "" {
		line += " (" + plain(x.Note, min(300, most)) + ")"
	}
	return line
}

// fillTurn renders a turn as one line.
func fillTurn(t Turn, most int) string {
	part := func(raw json.RawMessage) string {
		text, err := json.Marshal(raw)
		if err != nil {
			return "..."
		}
		if utf8.RuneCount(text) > most {
			text = []byte(string([]rune(string(text))[:most]) + "…")
		}
		return plain(string(text), 8*most)
	}
	line := plain(t.Method, 200) + " args " + part(t.Args)
	if len(t.Kwargs) > len("{}") {
		line += " kwargs " + part(t.Kwargs)
	}
	switch {
	case t.Failure != "":
		return line + " failed: " + plain(t.Failure, most)
	case t.Value == nil:
		return line + " gave a value that is not kept any more"
	}
	return line + " gave " + part(t.Value)
}

// earlierProgram returns the code with the tags escaped that could make a forge look like a repair. Everything else is
// verbatim.
func earlierProgram(code string) string {
	code = cut(strings.TrimRight(code, "\n"), maxFailedCode)
	return regexp.MustCompile(`<(/?(?:failed|failure|earlier)_\w+>)`).ReplaceAllString(code, "&lt;$1")
}

// news returns the feedback that the request does not contain elsewhere. The failure that a repair is about is given in
// full already.
func news(in *Input) []string {
	all := in.shown(in.Feedback)
	if len(all) == 0 || in.Kind != provider.KindRepair {
		return all
	}
	const enough = 200 // compare only the beginning, because the feedback may be clipped
	message, _, _ := strings.Cut(in.failureMessage(), "\n")
	last := len(all) - 1
	if message != "" && strings.Contains(all[last], message[:min(len(message), enough)]) {
		return all[:last]
	}
	return all
}

// fillFailure renders the failed program and what is known about its failure.
func fillFailure(f *filled, in *Input, b bounds) {
	f.FailedCode = strings.TrimRight(in.FailedCode, "\n")
	if len(f.FailedCode) > b.code {
		f.FailedCode = cut(f.FailedCode, b.code) + "\n// ... the rest is left out"
	}
	if strings.TrimSpace(f.FailedCode) == "" {
		f.FailedCode = "// no program"
	}
	f.FailureClass = plain(in.FailureClass, 100)
	message := in.failureMessage()
	f.FailureMessage = visible(once(message), min(maxMessage, b.data))
	f.FailedLines = pointed(message, in.FailedCode, min(200, b.data))
	if m := informative(in.FailureMetadata); len(m) > 0 {
		f.FailureMetadata = encoded(m, min(maxMessage, b.data))
	}
	f.FailureAdvice = advice(in)
}

// once drops lines that repeat the end of the previous line: a compiler's first error is in the message and again in
// the list of errors.
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

// pointed quotes the lines of the failed code that the message refers to, with their numbers, because models count
// lines badly.
func pointed(message, code string, most int) string {
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
			out = append(out, fmt.Sprintf("%d: %s", n, visible(line, most)))
		}
	}
	return strings.Join(out, "\n")
}

// informative returns the metadata without members that are useless to a model.
func informative(metadata map[string]any) map[string]any {
	out := make(map[string]any, len(metadata))
	for k, v := range metadata {
		if list, ok := v.([]any); ok && len(list) == 0 || v == nil || k == "detail" || k == "fixture" ||
			k == "example" {
			continue
		}
		if list, ok := v.([]string); ok && len(list) == 0 {
			continue
		}
		out[k] = v
	}
	return out
}

// advice returns what the failure's class demands, if the message alone may not convey it, or "".
func advice(in *Input) string {
	if _, ok := in.FailureMetadata["mismatch"]; ok {
		return "The returned value broke the deliverable. Make the program deliver what the contract asks for; where that is impossible for an input, return recurgent.Fail with the reason. Do not pad the value with invented data."
	}
	switch in.Broke {
	case BrokeExample:
		return "The program does not give the answer that a person fixed for an example. Every example must hold."
	case BrokeFixture:
		return "The program gives another answer to an earlier call than the one before it gave. Answer that call as before, in the same form, and repair what failed."
	}
	switch in.FailureClass {
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

// note returns remarks on how the arguments are shown: masked or shortened.
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

// The filled types hold rendered parts of the user message; an empty string is left out of it.
type filledContract struct{ Purpose, Deliverable, Acceptance, FailurePolicy, Signature string }

type filledTool struct{ Role, Own, Purpose, Methods, Deliverable, Weak string }

func fillContract(k *agent.Contract, most int) *filledContract {
	if k.Empty() {
		return nil
	}
	return &filledContract{Purpose: plain(k.Purpose, min(maxPurpose, most)), Deliverable: part(k.Deliverable, most),
		Acceptance:    part(k.Acceptance, most),
		FailurePolicy: part(k.FailurePolicy, most), Signature: part(k.Signature, most)}
}

type filledRecheck struct {
	Code   string
	Before *filledContract
}

func fillRecheck(r *Recheck, b bounds) *filledRecheck {
	f := &filledRecheck{Code: earlierProgram(r.Code),
		Before: fillContract(&agent.Contract{Purpose: r.Before.Purpose, Acceptance: r.Before.Acceptance,
			FailurePolicy: r.Before.FailurePolicy}, b.contract)}
	if len(f.Code) > b.code {
		f.Code = cut(f.Code, b.code) + "\n// ... the rest is left out"
	}
	return f
}

// part renders a JSON part of a contract, or returns "" if it is absent or null.
func part(raw json.RawMessage, most int) string {
	if trimmed := strings.TrimSpace(string(raw)); trimmed == "" || trimmed == "null" {
		return ""
	}
	return readable(raw, most)
}

func fillTool(t Tool) filledTool {
	methods := make([]string, 0, 8)
	for _, m := range t.Methods[:min(len(t.Methods), 8)] {
		methods = append(methods, plain(m, 200))
	}
	if more := len(t.Methods) - len(methods); more > 0 {
		methods = append(methods, fmt.Sprintf("%d more", more))
	}
	f := filledTool{Role: plain(agent.Quoted(t.Role), 200), Purpose: plain(t.Purpose, 240),
		Methods: strings.Join(methods, "; "), Weak: plain(t.Weak, 200)}
	if d := part(t.Deliverable, maxContract); d != "" {
		f.Deliverable = cut(d, 400)
	}
	return f
}

// contextKeys lists the keys of the context with the shapes of their values, sorted by key.
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

// filledFile is the description of a file, with its beginning and end.
type filledFile struct{ Line, Beginning, End string }

func fillFile(x File, most int) filledFile {
	line := fmt.Sprintf("%s: %s, %s, %d bytes, ", plain(x.ID, 64), strconv.Quote(plain(x.Name, 200)),
		plain(x.MediaType, 100), x.Bytes)
	if x.Packed {
		line += "packed by gzip: "
	}
	switch {
	case x.Encoding != "":
		return filledFile{line + textLine(x), visible(spelled(x.Beginning), most), visible(spelled(x.End), most)}
	case len(x.Listing) > 0:
		return filledFile{strings.TrimSuffix(line, ", ") + "; it holds",
			data(strings.Join(x.Listing, "\n"), min(maxListing, most)), ""}
	default:
		return filledFile{line + "no text", "", ""}
	}
}

// lines returns the text with LF line ends. A CR at the end is dropped: the text may have been cut inside a CR LF.
func lines(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\r")
}

// unseen reports whether a reader would not see the character, or would take it for a space. A program that parses the
// text encounters it nevertheless.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && r != ' ' && r != '\u3000' && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs)
}

// spelled replaces unseen characters by their code points, as \uXXXX.
func spelled(text string) string {
	var b strings.Builder
	for _, r := range lines(text) {
		if unseen(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func textLine(x File) string {
	line := "text in " + x.Encoding
	switch x.LineEnd {
	case "\r\n":
		line += ", lines end in CR LF"
	case "\r":
		line += ", lines end in CR, for which OpenText gives LF"
	}
	if strings.ContainsFunc(lines(x.Beginning)+lines(x.End), unseen) {
		line += `, unseen characters as \uXXXX`
	}
	if x.Cut {
		return line + "; it begins"
	}
	return line + "; all of it"
}

// fillConnection renders a connection as one line.
func fillConnection(c Connection) string {
	line := plain(c.Name, 100) + ": " + plain(strings.Join(c.Methods, ", "), 100) + " of " +
		plain(strings.Join(c.Addresses, ", "), 600)
	if c.Whole {
		line += ", which is the whole address"
	}
	if c.Description != "" {
		line += ": " + plain(c.Description, 600)
	}
	return line
}
