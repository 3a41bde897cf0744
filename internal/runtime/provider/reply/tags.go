package reply

import (
	"regexp"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// Patterns of an argument in tags, in the formats of Qwen3-Coder and Seed (parameter=code), Anthropic, MiniMax,
// DeepSeek and Step (parameter name="code"), Kimi (<|open|>argument key="code"), GLM (<arg_key>code</arg_key>), and
// with the argument's own name as the tag.
var (
	namedTag  = lazy.Regexp(`^<((?:[^<>\s=]{1,24}[:｜|])?(?:parameter|param|argument|arg))(?:=|\s+(?:name|key)\s*=\s*)["']?([\w.-]{1,60})["']?[^<>\n]{0,120}>`)
	kimiTag   = lazy.Regexp(`^<\|open\|>(argument)\s+(?:name|key)="([\w.-]{1,60})"[^<>\n]{0,120}<\|sep\|>`)
	glmTag    = lazy.Regexp(`^<(arg)_key>\s*([\w.-]{1,60})\s*</arg_key>(?:\\n|\s)*<arg_value>`)
	memberTag = lazy.Regexp(`^<((code|summary|parameters|returns|notes|solver_shape|unchanged))>`)
)

// A tag is the opening tag of an argument.
type tag struct {
	name, end string
	n         int // length in bytes
}

// tagAt parses the opening tag of an argument at the beginning of s.
func tagAt(s string) (tag, bool) {
	s = s[:min(len(s), 300)]
	for i, form := range []*regexp.Regexp{namedTag(), kimiTag(), glmTag(), memberTag()} {
		m := form.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		end := "</" + m[1] + ">"
		switch i {
		case 1:
			end = "<|close|>argument<|sep|>"
		case 2:
			end = "</arg_value>"
		}
		return tag{m[2], end, len(m[0])}, true
	}
	return tag{}, false
}

// endOfCall matches what ends an argument whose own end tag is missing.
var endOfCall = lazy.Regexp(
	`</(?:[^<>\s]{1,24}[:｜|])?(?:function|invoke|tool_call|function_calls|tool_calls|submit_program)>|<parameter=|<arg_key>`)

// minimaxMark precedes each tag of MiniMax.
const minimaxMark = "]<]minimax[>["

// tags reads consecutive arguments of a call in tags.
func (r *reader) tags(i int) (piece, bool) {
	args, source := newObject(), text{style: styleRaw}
	at, open := i, false
	for {
		t, ok := tagAt(r.s[at:])
		if !ok {
			break
		}
		from := at + t.n
		end, after := r.valueEnd(from, t)
		value := tagText(r.s[from:end])
		if t.name == "code" {
			source.raw, source.value = value, value
		} else {
			args.put(t.name, tagValue(value))
		}
		open = after == len(r.s) && end == after
		at = after
		rest := strings.TrimLeft(r.s[at:], " \t\r\n")
		rest = strings.TrimPrefix(rest, minimaxMark)
		if next := len(r.s) - len(rest); tagAhead(rest) {
			at = next
		}
	}
	if source.value == "" && len(r.keeps(args, "")) == 0 {
		return piece{}, false
	}
	if source.value != "" {
		args.put("code", source)
	}
	if open {
		r.begun = i
	}
	out := piece{end: at}
	r.add(&out, args, i, open)
	c, ok := best(out.candidates)
	// A sentence may mention <code>.
	if ok && c.rank != rankWhole && memberTag().MatchString(r.s[i:min(len(r.s), i+40)]) && !r.isMarked(i) {
		return piece{}, false
	}
	return out, ok
}

func tagAhead(s string) bool {
	_, ok := tagAt(s)
	return ok
}

// valueEnd returns the end of the value and of its end tag. It takes the first end tag or, for code, the first that
// makes the program whole.
func (r *reader) valueEnd(from int, t tag) (end, after int) {
	if t.name == "code" {
		if end, after, ok := r.wholeEnd(from, t); ok {
			return end, after
		}
	}
	if n := strings.Index(r.s[from:], t.end); n >= 0 {
		return from + n, from + n + len(t.end)
	}
	if m := endOfCall().FindStringIndex(r.s[from:]); m != nil {
		return from + m[0], from + m[0]
	}
	return len(r.s), len(r.s)
}

// wholeEnd returns the end tag of the value, or of the call, before which the value is a whole program. The program's
// strings may contain such tags.
func (r *reader) wholeEnd(from int, t tag) (end, after int, ok bool) {
	for at, tries := from, 0; tries < maxTries && r.work > 0; tries++ {
		m := nextEnd(r.s[at:], t)
		if m == nil {
			break
		}
		end, after = at+m[0], at+m[1]
		if r.rank(tagText(r.s[from:end])) == rankWhole {
			if r.s[end:after] != t.end {
				after = end
			}
			return end, after, true
		}
		at = after
	}
	c, found := r.bare(r.s[from:])
	return from + c.end, from + c.end, found && c.rank == rankWhole
}

// nextEnd returns the start and the end of the first end tag, of the value or of the call, or nil if there is none.
func nextEnd(s string, t tag) []int {
	own := strings.Index(s, t.end)
	if own >= 0 {
		s = s[:own]
	}
	m := endOfCall().FindStringIndex(s)
	if m == nil && own >= 0 {
		return []int{own, own + len(t.end)}
	}
	return m
}

// tagText returns a value without what the format adds around it: CDATA, and a line break on each side.
func tagText(s string) string {
	s = strings.TrimSuffix(s, minimaxMark)
	if inner := strings.TrimSpace(s); strings.HasPrefix(inner, "<![CDATA[") {
		s = strings.TrimSuffix(strings.TrimPrefix(inner, "<![CDATA["), "]]>")
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

// tagValue decodes a value other than code: as JSON if it is JSON, otherwise as a string.
func tagValue(s string) any {
	v, end, closed, ok := parse(strings.TrimSpace(s))
	if ok && closed && end == len(strings.TrimSpace(s)) {
		return v
	}
	return text{raw: s, value: s, style: styleRaw}
}
