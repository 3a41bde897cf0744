package reply

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Canonical converts the body of a success reply to a single chat completion. The body may be JSON in any format in
// which servers send replies, or an unrequested stream. It drops members that are not needed, so their types do not
// matter. If the body is an error, Canonical returns a *ServerError, otherwise an error that explains why the body
// cannot be read.
func Canonical(body []byte) ([]byte, error) {
	s := strings.TrimPrefix(string(body), "\ufeff")
	switch {
	case !utf8.ValidString(s):
		return nil, errors.New("it is not UTF-8")
	case isPage(s):
		return nil, &ServerError{Status: 404, Body: []byte(s[:min(len(s), maxError)])}
	}
	docs, err := documents(s)
	if err != nil {
		return nil, err
	}
	c, err := gather(docs)
	if err != nil {
		return nil, err
	}
	return c.marshal()
}

// gather joins the documents of a reply. Several whole replies are unambiguous only if each continues the one before.
func gather(docs []*object) (*completion, error) {
	all, whole := &completion{}, (*completion)(nil)
	known := 0
	for _, o := range docs {
		one := &completion{}
		recognised := one.document(o, 0)
		if failed := failureOf(o, one, recognised); failed != nil {
			failed.Partial = all.has() || whole != nil || one.has()
			return nil, failed
		}
		if !recognised {
			continue
		}
		known++
		if one.whole == 0 {
			all.document(o, 0)
			continue
		}
		if before := whole; before != nil && !one.continues(before) {
			return nil, errors.New("it holds several replies, which differ")
		}
		whole = one
	}
	if whole != nil {
		if all.has() && !whole.continues(all) {
			return nil, errors.New("it holds a reply in parts and another as a whole, which differ")
		}
		whole.usage = merged(whole.usage, all.usage)
		return whole, nil
	}
	if known == 0 {
		return nil, unknownShape(docs)
	}
	return all, nil
}

// continues reports whether c begins with all of before.
func (c *completion) continues(before *completion) bool {
	if len(c.calls) < len(before.calls) || !strings.HasPrefix(c.content.String(), before.content.String()) {
		return false
	}
	for i, call := range before.calls {
		if !strings.HasPrefix(c.calls[i].arguments.String(), call.arguments.String()) {
			return false
		}
	}
	return true
}

// merged returns the larger of each figure in a and b.
func merged(a, b map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, m := range []map[string]int64{a, b} {
		for k, n := range m {
			if had, before := out[k]; !before || n > had {
				out[k] = n
			}
		}
	}
	return out
}

func unknownShape(docs []*object) error {
	if len(docs) == 0 {
		return errors.New("it is empty")
	}
	raw := string(encode(docs[len(docs)-1]))
	return fmt.Errorf("it holds no reply of a model: %s", raw[:min(len(raw), 300)])
}

// documents splits a body, which is one JSON value, several, or a stream of events.
func documents(s string) ([]*object, error) {
	var docs []*object
	var pending strings.Builder // an event with several lines of data
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" {
			break
		}
		if s[0] == '{' || s[0] == '[' {
			v, end, closed, ok := parse(s)
			if !ok || !closed {
				return nil, errors.New("it breaks off, or is not JSON")
			}
			var err error
			if docs, err = appendObjects(docs, v); err != nil {
				return nil, err
			}
			s = s[end:]
			continue
		}
		line := s
		if n := strings.IndexAny(s, "\r\n"); n >= 0 {
			line = s[:n]
		}
		s = s[len(line):]
		if err := eventLine(line, &docs, &pending); err != nil {
			return nil, err
		}
	}
	if pending.Len() > 0 {
		return nil, errors.New("it breaks off within an event")
	}
	return docs, nil
}

// eventLine reads one line of a stream of events.
func eventLine(line string, docs *[]*object, pending *strings.Builder) error {
	field, value, _ := strings.Cut(line, ":")
	switch field = strings.TrimSpace(field); {
	case field == "data":
		value = strings.TrimSpace(value)
		if value == "[DONE]" || strings.HasPrefix(value, ":") || value == "" {
			return nil
		}
		if pending.Len() > 0 {
			pending.WriteByte('\n')
		}
		pending.WriteString(value)
		v, end, closed, ok := parse(pending.String())
		if !ok || !closed || end != pending.Len() {
			return nil // the next line may complete it
		}
		pending.Reset()
		var err error
		*docs, err = appendObjects(*docs, v)
		return err
	case field == "", field == "event", field == "id", field == "retry", line == "[DONE]":
		return nil
	}
	return fmt.Errorf("it is not JSON: %s", line[:min(len(line), 200)])
}

// maxDocuments bounds the number of parts of a stream.
const maxDocuments = 200_000

// appendObjects appends the objects of a value. An object that has a name twice with different values is ambiguous,
// which is an error.
func appendObjects(docs []*object, v any) ([]*object, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		o, ok := e.(*object)
		switch {
		case !ok:
			return nil, errors.New("it is not an object")
		case len(docs) >= maxDocuments:
			return nil, errors.New("it has too many parts")
		}
		if name := twice(o); name != "" {
			return nil, fmt.Errorf("it has %q twice, with two values", name)
		}
		docs = append(docs, o)
	}
	return docs, nil
}

// twice returns a name that some object within v has twice with different values, or "".
func twice(v any) string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if name := twice(e); name != "" {
				return name
			}
		}
	case *object:
		for name := range v.twice {
			return name
		}
		for _, key := range v.keys {
			if name := twice(v.values[key]); name != "" {
				return name
			}
		}
	}
	return ""
}
