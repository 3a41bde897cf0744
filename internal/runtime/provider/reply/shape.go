package reply

import "strings"

// document adds one document of a reply in any known format, and reports whether it was recognized.
func (c *completion) document(o *object, depth int) bool {
	if c.id == "" {
		c.id = scalar(o.get("id"))
	}
	for _, key := range []string{"model", "modelVersion"} {
		if m := textOf(o.get(key)); m != "" {
			c.model = m
		}
	}
	for _, key := range []string{"usage", "usageMetadata", "x_groq.usage", "meta.billed_units"} {
		c.count(at(o, key))
	}
	if o.get("prompt_eval_count") != nil || o.get("eval_count") != nil {
		c.count(o)
	}
	for _, shape := range []func(*object) bool{c.choices, c.event, c.ollama, c.items, c.anthropic, c.gemini, c.plain} {
		if shape(o) {
			return true
		}
	}
	if depth > 2 {
		return false
	}
	// Gateways wrap the documents that they forward.
	for _, key := range []string{"data", "result", "response", "body", "completion", "output"} {
		if inner, ok := o.get(key).(*object); ok && c.document(inner, depth+1) {
			return true
		}
	}
	return false
}

// choices adds a document in OpenAI's format. Only the first choice counts.
func (c *completion) choices(o *object) bool {
	v, there := o.values["choices"]
	list, ok := v.([]any)
	if one, isOne := v.(*object); isOne {
		list, ok = []any{one}, true
	}
	if !ok {
		return there && v == nil && o.get("usage") != nil // the last part of a stream
	}
	for _, e := range list {
		choice, ok := e.(*object)
		if !ok || scalar(choice.get("index")) != "" && scalar(choice.get("index")) != "0" && len(list) > 1 {
			continue
		}
		if delta, isPart := choice.get("delta").(*object); isPart && len(delta.keys) > 0 {
			c.message(delta)
		} else if m := choice.get("message"); m != nil {
			c.whole++
			c.message(m)
		} else if t := choice.get("text"); t != nil {
			c.parts(t, false)
		}
		c.finished(choice.get("finish_reason"))
		c.count(choice.get("usage"))
		break
	}
	return true
}

// ollama adds a document in Ollama's own format, or in others with the message at the top. In its streams each part has
// one.
func (c *completion) ollama(o *object) bool {
	m, ok := o.get("message").(*object)
	switch {
	case ok:
		c.message(m)
	case o.get("done") != nil && o.get("response") != nil:
		c.parts(o.get("response"), false)
		c.parts(o.get("thinking"), true)
	default:
		return false
	}
	for _, key := range []string{"done_reason", "finish_reason", "stop_reason"} {
		c.finished(o.get(key))
	}
	return true
}

// items adds a document of OpenAI's responses API: a list of items.
func (c *completion) items(o *object) bool {
	list, ok := o.get("output").([]any)
	if !ok {
		return false
	}
	for _, e := range list {
		c.parts(e, false)
	}
	c.seen = true
	c.finished(o.get("status"))
	c.finished(at(o, "incomplete_details.reason"))
	return true
}

// anthropic adds a document in Anthropic's format, or in others with content at the top.
func (c *completion) anthropic(o *object) bool {
	switch v := o.get("content").(type) {
	case []any:
		c.parts(v, false)
	case text:
		if o.get("role") == nil && o.get("stop") == nil && o.get("stop_reason") == nil {
			return false
		}
		c.message(o)
	default:
		return false
	}
	c.seen = true
	c.toolCalls(o.get("tool_calls"))
	for _, key := range []string{"stop_reason", "finish_reason", "stop_type"} {
		c.finished(o.get(key))
	}
	return true
}

// gemini adds a document in Gemini's own format.
func (c *completion) gemini(o *object) bool {
	list, ok := o.get("candidates").([]any)
	if !ok {
		if reason := textOf(at(o, "promptFeedback.blockReason")); reason != "" {
			c.seen, c.finish = true, "content_filter"
			c.refusal.WriteString("the prompt was blocked: " + reason)
			return true
		}
		return o.get("usageMetadata") != nil
	}
	for _, e := range list[:min(len(list), 1)] {
		if candidate, ok := e.(*object); ok {
			c.parts(candidate.get("content"), false)
			c.finished(candidate.get("finishReason"))
			c.seen = true
		}
	}
	return true
}

// plain adds a document that has only a text, or only calls (Cloudflare).
func (c *completion) plain(o *object) bool {
	before := len(c.calls)
	if o.get("code") == nil && o.get("status") == nil {
		c.toolCalls(o.get("tool_calls"))
	}
	for _, key := range []string{"generated_text", "output_text", "text", "response"} {
		if t, ok := o.get(key).(text); ok && o.get("code") == nil && o.get("status") == nil {
			c.parts(t, false)
			c.finished(o.get("finish_reason"))
			return true
		}
	}
	return len(c.calls) > before
}

// event adds an event of a stream that is not OpenAI's chat format: of its responses API, or Anthropic's.
func (c *completion) event(o *object) bool {
	kind := textOf(o.get("type"))
	switch {
	case kind == "response.completed", kind == "response.incomplete", kind == "response.failed":
		if r, ok := o.get("response").(*object); ok {
			*c = completion{id: c.id, model: c.model, usage: c.usage} // the event repeats the whole reply
			return c.document(r, 1)
		}
	case strings.HasPrefix(kind, "response."):
		c.responsePart(kind, o)
	case kind == "message_start":
		if m, ok := o.get("message").(*object); ok {
			c.model = textOf(m.get("model"))
			c.count(m.get("usage"))
		}
		c.seen = true
	case kind == "content_block_start":
		if b, ok := o.get("content_block").(*object); ok && textOf(b.get("type")) == "tool_use" {
			c.call(scalar(o.get("index")), "", textOf(b.get("name"))).add(scalar(b.get("id")), textOf(b.get("name")),
				nil)
		} else if ok {
			c.parts(b, false)
		}
	case kind == "content_block_delta":
		d, _ := o.get("delta").(*object)
		if part := d.get("partial_json"); part != nil {
			c.call(scalar(o.get("index")), "", "").add("", "", part)
		} else if d != nil {
			c.parts(d, false)
		}
	case kind == "message_delta":
		c.finished(at(o, "delta.stop_reason"))
	case kind == "content_block_stop", kind == "message_stop", kind == "ping":
	default:
		return false
	}
	return true
}

// responsePart adds an event of OpenAI's responses API.
func (c *completion) responsePart(kind string, o *object) {
	index := scalar(o.get("output_index"))
	delta := o.get("delta")
	switch {
	case kind == "response.output_text.delta":
		c.parts(delta, false)
	case strings.HasPrefix(kind, "response.reasoning") && strings.HasSuffix(kind, ".delta"):
		c.parts(delta, true)
	case kind == "response.function_call_arguments.delta":
		c.call(index, "", "").add("", "", delta)
	case kind == "response.output_item.added":
		if item, ok := o.get("item").(*object); ok && textOf(item.get("type")) == "function_call" {
			c.call(index, "", textOf(item.get("name"))).add("", textOf(item.get("name")), nil)
		}
	}
}
