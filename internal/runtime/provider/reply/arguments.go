package reply

import (
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// wrappers are members of objects that hold the arguments of a call, and nameKeys members that name the tool.
var (
	wrappers = []string{"arguments", "parameters", "args", "input", "kwargs", "params", "tool_input", "action_input",
		"payload", "function", "function_call", "tool_call", "tool_calls", "tool_uses", "calls", "function_calls"}
	nameKeys  = []string{"name", "tool_name", "tool", "function", "recipient_name", "action", "function_name"}
	notWord   = lazy.Regexp(`[^a-z0-9]+`)
	namedSame = lazy.Regexp(`submitprogram\d{0,3}(?:commentary|json|final)?$`)
)

// isSubmit reports whether a tool's name means submit_program, possibly with a namespace before it, an index after it,
// or misspelled.
func isSubmit(name string) bool {
	return namedSame().MatchString(notWord().ReplaceAllString(strings.ToLower(name), ""))
}

// programs returns the programs in a call's arguments, whatever they are wrapped in.
func (f *finder) programs(v any, name string, depth int) []candidate {
	if depth > maxNesting || f.work <= 0 {
		return nil
	}
	switch v := v.(type) {
	case text:
		return f.programsOfText(v, name, depth)
	case []any:
		if code, ok := lines(v); ok {
			return f.programs(text{raw: code, value: code, style: styleRaw}, name, depth+1)
		}
		var out []candidate
		for _, e := range v[:min(len(v), maxCandidates)] {
			out = append(out, f.programs(e, name, depth+1)...)
		}
		return out
	case *object:
		return f.programsOfObject(v, name, depth)
	}
	return nil
}

// programsOfText reads arguments that are a string: encoded JSON, or the program itself.
func (f *finder) programsOfText(t text, name string, depth int) []candidate {
	s := strings.TrimSpace(t.value)
	if s == "" {
		return nil
	}
	if strings.ContainsRune(`{["'`, rune(s[0])) {
		if v, end, _, ok := parse(s); ok && strings.TrimSpace(s[end:]) == "" {
			return f.programs(v, name, depth+1)
		}
	}
	if r := f.rank(s); r > rankPart && beginsAsGo(s) {
		return []candidate{{code: t.value, rank: r, name: name}}
	}
	inner := f.read(t.value, depth+1)
	for i := range inner.candidates {
		inner.candidates[i].name = name
	}
	return inner.candidates
}

// programsOfObject searches an object for programs: first the member code, then known wrappers, the member unchanged, a
// single nested object, and at last any member that is a whole program.
func (f *finder) programsOfObject(o *object, name string, depth int) []candidate {
	if code := o.get("code"); code != nil {
		return append(f.keeps(o, name), f.ofCode(o, code, name, depth)...)
	}
	for _, key := range nameKeys {
		if s := textOf(o.get(key)); s != "" && len(s) < 200 {
			name = s
			break
		}
	}
	for _, key := range wrappers {
		if inner := o.get(key); inner != nil {
			if out := f.programs(inner, name, depth+1); len(out) > 0 {
				return out
			}
		}
	}
	if kept := f.keeps(o, name); len(kept) > 0 {
		return kept
	}
	if len(o.keys) == 1 {
		if _, isObject := o.values[o.keys[0]].(*object); isObject {
			return f.programs(o.values[o.keys[0]], o.keys[0], depth+1)
		}
	}
	for _, key := range o.keys { // under an unknown name, only a whole program counts
		t, _ := o.values[key].(text)
		if !looksLikeGo().MatchString(t.value) && !strings.Contains(t.value, `\n`) {
			continue
		}
		if code, r := f.source(t, depth); r == rankWhole {
			return []candidate{{code: code, rank: r, args: o, name: name}}
		}
	}
	return nil
}

// keeps reads the member unchanged of a call. It returns a candidate if the member is true and that is allowed.
func (f *finder) keeps(o *object, name string) []candidate {
	v := decoded(o.get("unchanged"))
	if t, isText := v.(text); isText {
		v = words[strings.TrimSpace(t.value)]
	}
	if v != true {
		return nil
	}
	f.kept = true
	if !f.keep {
		return nil
	}
	return []candidate{{rank: rankKeeps, args: o, name: name}}
}

// ofCode reads the member code: a string, a list of its lines, or files by name.
func (f *finder) ofCode(o *object, code any, name string, depth int) []candidate {
	c := candidate{args: o, name: name, twice: o.twice["code"]}
	switch v := code.(type) {
	case text:
		if strings.HasPrefix(strings.TrimSpace(v.value), "{") { // the arguments, encoded once more
			if inner := f.programsOfText(v, name, depth+1); len(inner) > 0 && inner[len(inner)-1].rank == rankWhole {
				return inner
			}
		}
		c.code, c.rank = f.source(v, depth)
	case []any:
		joined, ok := lines(v)
		if !ok {
			return nil
		}
		c.code, c.rank = f.source(text{raw: joined, value: joined, style: styleRaw}, depth)
	case *object:
		var files []string
		for _, key := range v.keys {
			if t := textOf(v.values[key]); f.rank(t) > rankNone {
				files = append(files, t)
			}
		}
		c.code = strings.Join(files, "\n")
		c.rank = f.rank(c.code)
	}
	if strings.TrimSpace(c.code) == "" {
		return nil
	}
	return []candidate{c}
}

// lines joins a text that is given as a list of lines. It reports whether the text looks like Go.
func lines(list []any) (string, bool) {
	var b strings.Builder
	for _, e := range list {
		t, ok := e.(text)
		if !ok {
			return "", false
		}
		b.WriteString(strings.TrimSuffix(t.value, "\n") + "\n")
	}
	return b.String(), len(list) > 0 && slices.ContainsFunc(list,
		func(e any) bool { return looksLikeGo().MatchString(textOf(e)) })
}
