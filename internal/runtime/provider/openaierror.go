package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/lazy"
)

var errRequestTimeout = errors.New("the model did not answer in time")

// classify converts the error of a request into an *Error.
func (p *OpenAI) classify(err error, seen *seen) *Error {
	e := &Error{Type: agent.ErrProvider, status: seen.status}
	switch {
	case seen.tooLarge:
		e.Reason, e.Message = ReasonNoAnswer, fmt.Sprintf("the model's server sent more than %d bytes", p.opts.MaxReply)
	case seen.status == 0:
		p.unreached(e, err)
	case isPage(seen.head):
		r := readRefusal(seen.status, seen.head)
		e.Reason, e.step, e.free, e.final = ReasonRejected, stepReached, true, true
		e.Message = p.scrub("the model's server answered with " + r.text + ": " + p.addressAdvice())
	case seen.status >= 300:
		r := readRefusal(seen.status, seen.refused)
		if seen.retryAfter > 0 {
			r.after = seen.retryAfter
		}
		p.judge(e, &r, seen)
		if seen.partial { // part of the reply arrived: it was paid, and the same request may end the same way
			e.free, e.transient, e.loading, e.Unread = false, false, false, true
		}
	default:
		// The server sent 200, but what followed broke off or was not a chat completion. It was paid all the same.
		e.Reason, e.Message, e.Unread = ReasonNetwork,
			p.scrub("the model's server sent a reply that cannot be read: "+err.Error()), true
	}
	return e
}

// unreached fills in e for a request without a reply.
func (p *OpenAI) unreached(e *Error, err error) {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which may contain a password
	}
	text := err.Error()
	e.Reason, e.step, e.transient = ReasonNetwork, stepReached, true
	advice := "is it running, and is OPENAI_BASE_URL right?"
	var dns *net.DNSError
	switch {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		e.transient, e.final, advice = false, true, "it speaks http: set OPENAI_BASE_URL to http://..."
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		e.transient, e.final, advice = false, true,
			"its certificate is not trusted here: SSL_CERT_FILE may name the authority that signed it"
	case errors.As(err, &dns) && dns.IsNotFound:
		advice = "is the host of OPENAI_BASE_URL right?"
	}
	e.Message = p.scrub(fmt.Sprintf("the model's server cannot be reached: %s (%s)", text, advice))
}

// judge classifies a refusal in e and decides whether a retry may succeed.
func (p *OpenAI) judge(e *Error, r *refusal, seen *seen) {
	j := judgementOf(r)
	if j.outcome != final && seen.header.Get("X-Should-Retry") == "false" {
		j.outcome = final
	}
	e.Reason, e.refusal, e.retryAfter = j.reason, r, r.after
	e.transient, e.loading, e.final = j.outcome == transient, j.outcome == loading, j.outcome == final && !r.unlucky
	e.free = j.free || r.status < 500 && r.status != http.StatusRequestTimeout
	if r.unlucky {
		e.Type, e.Reason, e.said, e.Unread, e.transient = agent.ErrInvalidCode, ReasonInvalidPayload, r.said, true,
			false
		j.says, j.advice, j.step = "the model's server could not read the model's answer as a call", "", stepNone
	}
	e.step = j.step
	text := r.text
	if text == "" {
		text = "no reason given"
	}
	advice := j.advice
	switch j.step {
	case stepModel:
		advice = fmt.Sprintf(advice, p.scrub(seen.model))
	case stepReached:
		if advice == "" {
			advice = p.addressAdvice()
		}
		if seen.location != "" {
			text, advice = "it redirects to "+MaskURL(seen.location),
				"set OPENAI_BASE_URL to "+MaskURL(strings.TrimSuffix(seen.location, chatPath))
		}
	case stepKey:
		if p.opts.Key == "" {
			advice = "it wants a key: " + advice
		}
	}
	e.Message = p.scrub(fmt.Sprintf("%s (%d): %s", j.says, r.status, text))
	if advice != "" {
		e.Message += "; " + advice
	}
}

// addressAdvice returns advice about the likely fault of the base URL.
func (p *OpenAI) addressAdvice() string {
	if p.opts.BaseURL == "" || versioned(p.opts.BaseURL) {
		return "is OPENAI_BASE_URL the address of an OpenAI-compatible interface?"
	}
	return "most servers want OPENAI_BASE_URL to end in /v1: try " + MaskURL(withVersion(p.opts.BaseURL))
}

// scrub removes secrets from text, and cuts it to 400 bytes.
func (p *OpenAI) scrub(text string) string {
	for _, s := range p.secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	const most = 400
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// A refusal is a server's error reply. Servers write it in many formats, and none is required.
type refusal struct {
	status   int
	text     string        // for people: codes and messages
	words    string        // for matching: the text and the kinds of the error in lower case
	param    string        // the field of the request that it names, in lower case
	unlucky  bool          // the server could not read the model's output: another sample may be readable
	said     string        // the model's unreadable output, if the server repeats it
	after    time.Duration // when to retry; 0 if it does not say
	estimate time.Duration // how long the model takes to load
	context  int           // size of the model's context in tokens; 0 if unknown
	prompt   int           // tokens of the prompt; 0 if unknown
	page     bool          // it is a web page
}

// unluckyKinds are error codes that mean that the server could not read the model's output (Groq).
var unluckyKinds = []string{"tool_use_failed", "json_validate_failed", "output_parse_failed"}

// maxRefusal bounds how many bytes of a refusal are read, and maxTexts each text that is taken from it.
const (
	maxRefusal = 256 << 10
	maxTexts   = 4 << 10
)

// readRefusal parses the body of a refusal.
func readRefusal(status int, body []byte) refusal {
	r := refusal{status: status}
	body = bytes.TrimSpace(body)
	var kinds, texts []string
	var document any
	switch {
	case len(body) == 0:
	case json.Unmarshal(body, &document) == nil:
		c := collector{r: &r}
		c.collect(document, "", 0)
		kinds, texts = c.kinds, c.texts
	case isPage(body):
		r.page = true
		texts = []string{"a web page" + titleOf(body)}
	default:
		texts = []string{string(body[:min(len(body), maxTexts)])}
	}
	r.text = strings.Join(texts, "; ")
	if r.words = strings.ToLower(strings.Join(append(slices.Clip(kinds), r.text),
		"; ")); len(kinds) > 0 && !slices.ContainsFunc(texts,
		func(t string) bool { return strings.Contains(t, kinds[0]) }) {
		r.text = kinds[0] + ": " + r.text
	}
	r.text = strings.TrimSuffix(strings.TrimSpace(r.text), ":")
	r.unlucky = r.said != "" || slices.ContainsFunc(kinds,
		func(k string) bool { return slices.Contains(unluckyKinds, k) })
	r.readText()
	return r
}

func isPage(body []byte) bool {
	start := bytes.ToLower(body[:min(len(body), 512)])
	return bytes.HasPrefix(start, []byte("<")) && (bytes.Contains(start, []byte("<html")) ||
		bytes.Contains(start, []byte("<!doctype")) || bytes.Contains(start, []byte("<head")))
}

var pageTitle = lazy.Regexp(`(?is)<title[^>]*>([^<]{1,120})`)

func titleOf(body []byte) string {
	if m := pageTitle().FindSubmatch(body); m != nil {
		return fmt.Sprintf(" (%s)", bytes.TrimSpace(m[1]))
	}
	return ""
}

// A collector finds the parts of a refusal anywhere in a document.
type collector struct {
	r            *refusal
	kinds, texts []string // codes and types; messages
}

// Keys under which servers put messages, kinds, and further objects with these.
var (
	textKeys = []string{"message", "Message", "msg", "error", "detail", "error_message", "errorMessage", "error_msg",
		"status_msg", "error_description", "description", "title", "raw", "reason"}
	kindKeys = []string{"code", "type", "status", "error_type", "error_code"}
	moreKeys = []string{"error", "errors", "message", "detail", "details", "metadata", "raw", "body", "violations",
		"external_model_message", "base_resp"}
)

// collect reads a value to a bounded depth, and at most 20 elements of a list.
func (c *collector) collect(v any, key string, depth int) {
	if depth > 6 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, element := range v[:min(len(v), 20)] {
			c.collect(element, key, depth+1)
		}
	case string:
		c.text(v, depth)
	case map[string]any:
		c.object(v, depth)
	}
}

// object reads the kinds, messages and fields of an object, and the objects within it.
func (c *collector) object(o map[string]any, depth int) {
	for _, key := range kindKeys {
		if kind, ok := o[key].(string); ok && kind != "" && kind != "error" && !isNumber(kind) &&
			!slices.Contains(c.kinds, kind) {
			c.kinds = append(c.kinds, kind)
		}
	}
	for _, key := range textKeys {
		if s, ok := o[key].(string); ok {
			c.text(s, depth)
		}
	}
	c.fields(o)
	for _, key := range moreKeys {
		if _, isText := o[key].(string); !isText && o[key] != nil {
			c.collect(o[key], key, depth+1)
		}
	}
}

// text adds a message. If it contains a JSON document, as gateways embed the errors of others, the document is read
// instead.
func (c *collector) text(s string, depth int) {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, "{["); i >= 0 && depth < 6 {
		var inner any
		if json.Unmarshal([]byte(s[i:]), &inner) == nil {
			before := len(c.texts)
			c.collect(inner, "", depth+1)
			if len(c.texts) > before {
				return
			}
		}
	}
	if s != "" && !slices.Contains(c.texts, s) && len(c.texts) < 8 {
		c.texts = append(c.texts, s[:min(len(s), maxTexts)])
	}
}

// fields reads the members of an object that are not messages.
func (c *collector) fields(o map[string]any) {
	if s, ok := o["param"].(string); ok && s != "" && c.r.param == "" {
		c.r.param = strings.ToLower(s)
	}
	if loc, ok := o["loc"].([]any); ok && c.r.param == "" {
		var path []string
		for _, step := range loc {
			if s := fmt.Sprint(step); s != "body" {
				path = append(path, s)
			}
		}
		c.r.param = strings.ToLower(strings.Join(path, "."))
	}
	if s, ok := o["failed_generation"].(string); ok {
		c.r.said = s
	}
	if s, ok := o["retryDelay"].(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			c.r.after = d
		}
	}
	for key, to := range map[string]*time.Duration{"estimated_time": &c.r.estimate, "retry_after": &c.r.after,
		"retry_after_seconds": &c.r.after} {
		if s, ok := o[key].(float64); ok && s > 0 && s < 1e6 {
			*to = time.Duration(s * float64(time.Second))
		}
	}
	for key, to := range map[string]*int{"n_ctx": &c.r.context, "n_prompt_tokens": &c.r.prompt} {
		if n, ok := o[key].(float64); ok && n > 0 && n < 1e9 {
			*to = int(n)
		}
	}
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// Patterns for times, context sizes and prompt sizes, matched in lower case. The first match counts.
var (
	saysAgain   = lazy.Regexp(`(?:again|retry) (?:in|after) ((?:\d+h)?(?:\d+m)?(?:[\d.]+m?s)?)`)
	saysWait    = lazy.Regexp(`(?:again|retry|wait)(?: in| after| for)? (\d{1,6}) (second|minute|hour)`)
	saysContext = patterns(
		`n_ctx["'\x60:=(\s]*(\d{3,8})`,
		`context limit:[^>]*>\s*(\d{3,8})`,
		`(?:context[ _](?:length|window|size|limit)|maximum prompt length|maximum model length|sequence length)[^0-9]{0,40}(\d{3,8})`,
		`(?:max_model_len|max_seq_len|max_total_tokens|max_num_tokens|maximum context)[^0-9]{0,20}(\d{3,8})`,
		`(\d{3,8})[- ]?(?:tokens? )?(?:of |maximum |max )*context`,
		`(?:inputs?|prompt|messages|total)\b.*?(?:must be|may be|cannot be|can be|exceeds?|<=|>|at most|up to|less than|limit(?:ed)?(?: is| of| to)?|allowed)[^0-9]{0,30}(\d{3,8})`,
		`limit is (\d{3,8})`,
		`max size: (\d{3,8}) tokens`,
	)
	saysPrompt = patterns(
		`(\d{1,8})(?: tokens)? (?:(?:in|from) the (?:input )?messages|in your prompt|of text input|input tokens|prompt tokens|\x60?inputs?\x60? tokens)`,
		`(?:keep the first|is too long|contains|passed|current length is|token count|request|given:?|n_keep|(?:prompt|input) length)[:=\s]*\(?(\d{2,8})\b`,
	)
	// A lower bound, not the size of the prompt: vLLM stops counting once the prompt does not fit.
	atLeast       = lazy.Regexp(`at least \d+`)
	saysRequested = patterns(`requested (?:about |up to )?(\d{2,8}) tokens`, `requested tokens \((\d{2,8})\)`,
		`requested (\d{2,8})\b`)
	// A server could not read the model's output and does not repeat it (llama.cpp).
	saysUnlucky = lazy.Regexp(`failed to parse tool call arguments|produced output that does not match`)
	// A model's output that its server could not read as a call (Ollama, llama.cpp).
	saysRaw = lazy.Regexp(`(?si)error parsing tool call: raw='(.*)', err=|failed to parse input at pos \d+: (.*)$`)
)

func patterns(texts ...string) (out []*regexp.Regexp) {
	for _, text := range texts {
		out = append(out, regexp.MustCompile(text))
	}
	return out
}

// readText fills in from the text what no member states.
func (r *refusal) readText() {
	if m := saysAgain().FindStringSubmatch(r.words); m != nil && r.after == 0 {
		if d, err := time.ParseDuration(m[1]); err == nil {
			r.after = d
		}
	}
	if m := saysWait().FindStringSubmatch(r.words); m != nil && r.after == 0 {
		n, _ := strconv.Atoi(m[1]) // m[1] consists of digits
		r.after = time.Duration(n) * map[string]time.Duration{"second": time.Second, "minute": time.Minute,
			"hour": time.Hour}[m[2]]
	}
	if r.context == 0 {
		r.context = firstNumber(saysContext, r.words)
	}
	if r.prompt == 0 {
		r.prompt = firstNumber(saysPrompt, atLeast().ReplaceAllString(r.words, ""))
	}
	r.unlucky = r.unlucky || saysUnlucky().MatchString(r.words)
	if m := saysRaw().FindStringSubmatch(r.text); m != nil && r.said == "" {
		r.said, r.unlucky = m[1]+m[2], true
	}
}

// firstNumber returns the number in the first match of the patterns, or 0.
func firstNumber(of []*regexp.Regexp, text string) int {
	for _, e := range of {
		if m := e.FindStringSubmatch(text); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				return n
			}
		}
	}
	return 0
}
