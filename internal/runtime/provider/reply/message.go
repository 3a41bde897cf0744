package reply

import "strings"

// thoughtKeys are keys under which servers put thoughts.
var thoughtKeys = []string{"reasoning_content", "reasoning", "thinking", "thought", "thoughts", "reasoning_text",
	"reasoning_details"}

// message adds a message, or a part of one.
func (c *completion) message(v any) {
	o, ok := v.(*object)
	if !ok {
		if s := textOf(v); s != "" {
			c.seen = true
			c.content.WriteString(s)
		}
		return
	}
	c.seen = true
	c.parts(o.get("content"), false)
	for _, key := range thoughtKeys {
		before := c.thoughts.Len()
		if c.parts(o.get(key), true); c.thoughts.Len() > before {
			break // the same thoughts may come under two names
		}
	}
	c.refusal.WriteString(textOf(o.get("refusal")))
	c.toolCalls(o.get("tool_calls"))
	if f, ok := o.get("function_call").(*object); ok {
		c.callOf(f)
	}
}

// parts adds a content: a string, a list of parts, or one part.
func (c *completion) parts(v any, thought bool) {
	switch v := v.(type) {
	case text:
		c.write(v.value, thought)
	case []any:
		for _, e := range v {
			c.parts(e, thought)
		}
	case *object:
		c.part(v, thought)
	case nil, bool:
	default:
		c.write(scalar(v), thought)
	}
}

func (c *completion) write(s string, thought bool) {
	c.seen = true
	if thought {
		c.thoughts.WriteString(s)
		return
	}
	c.content.WriteString(s)
}

// part adds one part of a content.
func (c *completion) part(o *object, thought bool) {
	kind := strings.ToLower(textOf(o.get("type")))
	if o.get("thought") == true || strings.Contains(kind, "thinking") || strings.Contains(kind, "reasoning") ||
		kind == "thought" {
		thought = true
	}
	if f, ok := o.get("functionCall").(*object); ok {
		c.callOf(f)
		return
	}
	if strings.Contains(kind, "tool_use") || strings.Contains(kind, "tool_call") ||
		strings.Contains(kind, "function_call") {
		c.callOf(o)
		return
	}
	if kind == "refusal" {
		c.refusal.WriteString(textOf(o.get("refusal")))
		return
	}
	for _, key := range []string{"text", "content", "thinking", "reasoning", "summary", "output_text", "value",
		"parts"} {
		if v := o.get(key); v != nil {
			c.parts(v, thought)
			return
		}
	}
	if kind == "" && !thought && len(o.keys) > 0 { // the answer itself is an object
		c.write(string(encode(o)), false)
	}
}

// toolCalls adds calls: a list, one call, calls by index, or any of these encoded as a string.
func (c *completion) toolCalls(v any) {
	switch v := decoded(v).(type) {
	case []any:
		for _, e := range v {
			c.callOf(e)
		}
	case *object:
		if v.get("function") != nil || v.get("name") != nil || v.get("arguments") != nil {
			c.callOf(v)
			return
		}
		for _, key := range v.keys {
			if e, ok := v.values[key].(*object); ok {
				if e.get("index") == nil {
					e.put("index", text{value: key, raw: key, style: styleRaw})
				}
				c.callOf(e)
			}
		}
	}
}

// callOf adds a call, or a part of one.
func (c *completion) callOf(v any) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	c.seen = true
	index := scalar(o.get("index"))
	id := scalar(o.get("id"))
	if call := scalar(o.get("call_id")); call != "" {
		id = call
	}
	inner := o
	for _, key := range []string{"function", "custom"} {
		if f, ok := o.get(key).(*object); ok {
			inner = f
		}
	}
	name := textOf(inner.get("name"))
	if name == "" {
		name = textOf(inner.get("tool_name"))
	}
	call := c.call(index, id, name)
	for _, key := range []string{"arguments", "input", "args", "parameters"} {
		if v := inner.get(key); v != nil {
			call.add(id, name, v)
			return
		}
	}
	call.add(id, name, nil)
}
