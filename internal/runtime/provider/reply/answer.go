package reply

import (
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// Text returns the answer of a completion as a text, without thoughts and without the marks that models put around it.
// The error is an *Unusable.
func Text(r openai.ChatCompletionResponse) (string, error) {
	if len(r.Choices) == 0 {
		return "", &Unusable{Message: "the model's reply has no choices"}
	}
	m, cut := r.Choices[0].Message, isCut(r.Choices[0].FinishReason)
	said := contentOf(m)
	if len(said) > maxText {
		return "", &Unusable{Message: "the model's reply is too long"}
	}
	a := newFinder(len(said)).read(said, 0)
	answer := stripped(a.answer(said))
	switch {
	case cut && !endsWithObject(answer):
		return "", &Unusable{Cut: true, Message: strings.ReplaceAll(cutMessage(r, inMessage{answered: a}),
			"the program", "the answer")}
	case answer == "" && m.Refusal != "":
		return "", &Unusable{Message: "the model refused: " + m.Refusal}
	case answer == "":
		return "", &Unusable{Message: "the model answered with nothing"}
	}
	return answer, nil
}

var (
	marksBefore = lazy.Regexp(`^(?:\s|<[|｜][^<>|｜\s]{1,40}[|｜]>)+`)
	marksBehind = lazy.Regexp(`(?:\s|<[|｜][^<>|｜\s]{1,40}[|｜]>|</s>|\[END FINAL RESPONSE\])+$`)
	enclosed    = lazy.Regexp(`(?s)^<(answer|response|output|final|final_answer)>\s*(.*?)\s*</(\w+)>$`)
)

// stripped removes the marks of models around an answer.
func stripped(s string) string {
	s = marksBehind().ReplaceAllString(marksBefore().ReplaceAllString(strings.TrimSpace(s), ""), "")
	if m := enclosed().FindStringSubmatch(s); m != nil && m[1] == m[3] {
		return m[2]
	}
	return s
}

// inner lists members that may contain the answer once more.
var inner = append([]string{"outputs", "output", "result", "response"}, wrappers...)

// Objects returns the JSON objects of an answer in order, whether bare, in fences, in the marks of a call, or within
// prose. It reads them as leniently as a program's arguments. Each object is followed by the objects that it contains
// as a call or a wrapper.
func Objects(answer string) []map[string]json.RawMessage {
	var out []map[string]json.RawMessage
	eachObject(answer, func(o *object, _ int) {
		for depth := 0; o != nil && depth < 4; depth++ {
			out = append(out, o.raw())
			var next *object
			for _, key := range inner {
				if held, ok := decoded(o.get(key)).(*object); ok {
					next = held
					break
				}
			}
			o = next
		}
	})
	return out
}

// eachObject calls f for each complete object, with its end.
func eachObject(answer string, f func(o *object, end int)) {
	work, found := 16*len(answer)+1<<16, 0
	for i := 0; i < len(answer) && work > 0 && found < maxCandidates; {
		if answer[i] != '{' {
			i++
			continue
		}
		p := &lenient{s: answer[i:], left: maxValues}
		v, ok := p.value()
		work -= p.i
		o, isObject := v.(*object)
		if !ok || p.open || !isObject || len(o.keys) == 0 {
			i++
			continue
		}
		i += p.i
		found++
		f(o, i)
	}
}

// endsWithObject reports whether a cut-off answer is complete, because it ends with a closed object.
func endsWithObject(answer string) bool {
	last := -1
	eachObject(answer, func(_ *object, end int) { last = end })
	return last >= 0 && strings.Trim(answer[last:], " \t\r\n`") == ""
}

func (o *object) raw() map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(o.keys))
	for _, k := range o.keys {
		if !o.twice[k] {
			out[k] = encode(o.values[k])
		}
	}
	return out
}

// Value parses one JSON value, as leniently as a program's arguments. ok reports whether the text contains nothing
// else.
func Value(s string) (raw json.RawMessage, ok bool) {
	s = strings.TrimSpace(s)
	v, end, closed, ok := parse(s)
	if !ok || !closed || end != len(s) {
		return nil, false
	}
	return encode(v), true
}

// Fenced returns the content of the last fenced block of an answer, or the answer itself if there is none.
func Fenced(answer string) string {
	out := answer
	for i := 0; i < len(answer); i++ {
		f, ok := fenceMark{}, false
		if answer[i] == '`' || answer[i] == '~' {
			f, ok = fenceAt(answer, i)
		}
		if !ok {
			continue
		}
		end, next := len(answer), len(answer)
		for at := f.body; at < len(answer) && next == len(answer); at = lineEnd(answer, at) {
			if _, alone := closesFence(answer[at:lineEnd(answer, at)], f.mark); alone {
				end, next = at, lineEnd(answer, at)
			}
		}
		out, i = strings.TrimSuffix(outdent(answer[f.body:end], f.indent), "\n"), next-1
	}
	return out
}
