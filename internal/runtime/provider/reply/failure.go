package reply

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// maxError bounds the body of a ServerError in bytes.
const maxError = 64 << 10

// isPage reports whether a body is a web page.
func isPage(s string) bool {
	start := strings.ToLower(strings.TrimSpace(s[:min(len(s), 512)]))
	return strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html") ||
		strings.HasPrefix(start, "<head") ||
		strings.HasPrefix(start, "<?xml") || strings.HasPrefix(start, "<!--") || strings.HasPrefix(start, "<body")
}

// failureOf returns the error that a document is or contains, or nil if there is none.
func failureOf(o *object, c *completion, recognised bool) *ServerError {
	for _, v := range []any{o.get("error"), o.get("errors"), inChoice(o), at(o, "response.error")} {
		if saysError(v) {
			return serverError(v, o)
		}
	}
	switch {
	case textOf(o.get("type")) == "error", textOf(o.get("object")) == "error":
		return serverError(o, o)
	case c.finish == "error" || c.finish == "failed":
		reason := newObject()
		reason.put("message", text{value: "the reply ended with finish_reason " + c.finish + ": " + c.refusal.String() +
			c.content.String(), style: styleRaw})
		return serverError(reason, o)
	case recognised && (c.has() || c.refusal.Len() > 0 || c.finish != ""):
		return nil
	}
	for _, key := range []string{"detail", "message", "Message", "msg", "error_message", "errorMessage", "error_msg",
		"errmsg", "error_description", "title", "base_resp"} {
		v := o.get(key)
		if _, isText := v.(text); saysError(v) && (isText || key == "detail" || key == "base_resp") {
			return serverError(o, o)
		}
	}
	return nil
}

// inChoice returns an error within a choice, as OpenRouter sends it, or nil.
func inChoice(o *object) any {
	list, _ := o.get("choices").([]any)
	for _, e := range list {
		choice, _ := e.(*object)
		for _, path := range []string{"error", "message.error", "delta.error"} {
			if v := at(choice, path); saysError(v) {
				return v
			}
		}
	}
	return nil
}

// saysError reports whether the value of a member such as error indicates an error.
func saysError(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case text:
		return strings.TrimSpace(v.value) != ""
	case []any:
		return len(v) > 0
	case *object:
		return len(v.keys) > 0
	}
	return false
}

// serverError returns a ServerError for v, the error part of a document.
func serverError(v any, o *object) *ServerError {
	if v == true {
		v = o
	}
	out := o
	if v != any(o) {
		out = newObject()
		out.put("error", v)
	}
	e := &ServerError{Status: statusOf(v, o), Body: encode(out)}
	if len(e.Body) > maxError {
		e.Body, _ = json.Marshal(map[string]any{"error": map[string]any{"message": strings.ToValidUTF8(string(
			e.Body[:maxError/8]), "")}})
	}
	return e
}

// codeKeys are members that may hold a numeric status.
var codeKeys = []string{"code", "status", "status_code", "statusCode", "http_code", "http_status", "error_code", "type",
	"error_type"}

// statusOf returns the HTTP status that corresponds to an error: from a numeric code, or from words. It is 502 if
// neither is known.
func statusOf(v any, o *object) int {
	objects := []*object{o}
	if inner, ok := v.(*object); ok {
		objects = []*object{inner, o}
	}
	for _, from := range objects {
		for _, key := range codeKeys {
			if n, err := strconv.Atoi(scalar(from.get(key))); err == nil && n >= 400 && n < 600 {
				return n
			}
		}
	}
	raw := string(encode(v))
	for _, w := range statusWords {
		if w.words().MatchString(raw) {
			return w.status
		}
	}
	return 502
}

// statusWords maps words of errors without a status to one. The first match counts.
var statusWords = []struct {
	words  func() *regexp.Regexp
	status int
}{
	{lazy.Regexp(`(?i)rate.?limit|too.?many.?requests|throttl|resource.?exhausted|quota|\b429\b`), 429},
	{lazy.Regexp(`(?i)insufficient.{0,20}(?:credit|balance|fund)|payment.?required|billing|arrear|\b402\b`), 402},
	{lazy.Regexp(`(?i)not authenticated|unauthori[sz]ed|unauthenticated|authentication|(?:invalid|incorrect|missing|no).{0,12}api.?key|invalid.?token|\b401\b`), 401},
	{lazy.Regexp(`(?i)permission.?denied|forbidden|access.?denied|\b403\b`), 403},
	{lazy.Regexp(`(?i)unexpected endpoint|not.?found|no such|does not exist|unknown model|model_not|\b404\b`), 404},
	{lazy.Regexp(`(?i)overloaded|unavailable|capacity|\b503\b|\b529\b`), 503},
	{lazy.Regexp(`(?i)time.?out|timed out|deadline|\b504\b`), 504},
	{lazy.Regexp(`(?i)invalid.?(?:request|argument|param)|bad.?request|context.?length|too long|unsupported|not support|validation|\b400\b|\b422\b`), 400},
	{lazy.Regexp(`(?i)internal.?(?:server.?)?error|\b500\b`), 500},
}
