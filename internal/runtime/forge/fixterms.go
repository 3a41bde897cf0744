package forge

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// fixTerms returns what the gate needs to know about a program in order to fix it.
func (w *writer) fixTerms(d agent.Declaration) report.Terms {
	t := report.Terms{Method: w.Method, Null: aboutNull(string(d.Returns))}
	if k := w.Terms.Contract; k != nil {
		t.Returns, t.Required = returnedType(k.Deliverable), required(k.Deliverable)
		t.Keys = keys(k.Purpose)
		t.Null = t.Null || aboutNull(k.Purpose) || aboutNull(string(k.Deliverable)) || aboutNull(string(k.Acceptance))
	}
	if t.Returns == "" {
		t.Returns = returnedType(d.Returns)
	}
	for _, p := range d.Listed() {
		t.Parameters = append(t.Parameters, report.Parameter{Name: p.Name, Optional: !p.Required})
	}
	return t
}

var (
	null   = lazy.Regexp(`(?i)\b(?:null|nil)\b`)
	absent = lazy.Regexp(`(?i)\b(?:none|nothing)\b`)
	empty  = lazy.Regexp(`(?i)\bempty\b`)
)

// aboutNull reports whether a text states that a method may answer null. It looks for that word, and for none or
// nothing unless the text is about something empty, such as an empty list.
func aboutNull(text string) bool {
	return null().MatchString(text) || absent().MatchString(text) && !empty().MatchString(text)
}

var (
	word   = lazy.Regexp(`[A-Za-z]\w{0,63}`)
	listed = lazy.Regexp(`\{[^{}]*\}`)
)

// keys returns the words that a purpose lists in braces, as in {name, hours}.
func keys(purpose string) (list []string) {
	for _, in := range listed().FindAllString(agent.Clip(purpose, 4000), -1) {
		list = append(list, word().FindAllString(in, -1)...)
	}
	return list
}

// required returns the members that a schema requires of an object.
func required(schema json.RawMessage) []string {
	var s struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Required
}

// returnedType returns the only JSON type that a schema allows, or "" if there is not exactly one.
func returnedType(schema json.RawMessage) string {
	var s struct {
		Type json.RawMessage `json:"type"`
	}
	var one string
	var list []string
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	if json.Unmarshal(s.Type, &list) == nil && len(list) == 1 {
		one = list[0]
	} else if json.Unmarshal(s.Type, &one) != nil {
		return ""
	}
	return strings.ToLower(one)
}
