package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// A question is what one operation asks of a model. A way determines how it is asked.
type question struct {
	operation, model, trace string
	charge                  Charge
	messages                []Message
	tool                    bool            // the answer must be a call of submit_program
	keep                    bool            // the call may state that the program is kept
	schema                  json.RawMessage // the answer must be JSON of this schema; nil means text
}

// body returns the body of the request, and the most tokens that its reply may have. The server receives exactly these
// bytes. The client library is bypassed, because it rejects parameters that it believes some models lack.
func (q *question) body(w way) (body []byte, most int) {
	r := openai.ChatCompletionRequest{Model: q.model, Messages: messages(q.messages, w.merged)}
	most = w.room(q)
	if w.field != fieldOld && w.field != fieldNone {
		r.MaxCompletionTokens = most
	}
	if w.field != fieldNew && w.field != fieldNone {
		//lint:ignore SA1019 deprecated by OpenAI; what other servers read
		r.MaxTokens = most
	}
	if q.tool && w.tools != toolsNone {
		r.Tools = []openai.Tool{submitProgram(w.plain, q.keep)}
		r.ToolChoice = w.tools.choice()
	}
	if len(q.schema) > 0 && !w.text {
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "reply", Schema: q.schema}}
	}
	if w.stream {
		r.Stream = true
		if !w.uncounted {
			r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("provider: " + err.Error()) // strings, numbers, and a schema that was decoded before
	}
	return body, most
}

// tokens returns a high estimate of the conversation's tokens: a token of Go and English has three bytes or more.
func (q *question) tokens() int {
	n := 0
	for _, m := range q.messages {
		n += len(m.Content)
	}
	if q.tool {
		n += len(submitParameters)
	}
	return n/3 + 16
}

// messages converts the conversation. If merged, the system's text is prepended to the first message of the user.
func messages(in []Message, merged bool) []openai.ChatCompletionMessage {
	if i := slices.IndexFunc(in, func(m Message) bool { return m.Role == "user" }); merged && i >= 0 {
		var texts []string
		var rest []Message
		for j, m := range in {
			switch {
			case m.Role == "system":
				texts = append(texts, m.Content)
			case j == i:
				rest = append(rest, Message{m.Role, strings.Join(append(texts, m.Content), "\n\n")})
			default:
				rest = append(rest, m)
			}
		}
		in = rest
	}
	out := make([]openai.ChatCompletionMessage, len(in))
	for i, m := range in {
		out[i] = openai.ChatCompletionMessage{Role: m.Role, Content: m.Content}
	}
	return out
}

// The schemas of submit_program's arguments. Every node has one explicit type, because servers refuse untyped nodes.
// The short schema is for servers that also refuse objects without members.
const (
	submitParameters = `{"type":"object","required":["code"],"properties":{` +
		`"code":{"type":"string"},"summary":{"type":"string"},` +
		`"parameters":{"type":"array","items":{"type":"object","required":["name","type","required"],"properties":{` +
		`"name":{"type":"string"},"type":{"type":"string","enum":["string","number","integer","boolean","array","object","file","any"]},"description":{"type":"string"},` +
		`"required":{"type":"boolean"},"default":{"type":"string","description":"as JSON"},"schema":{"type":"object"}}}},` +
		`"returns":{"type":"object"},"notes":{"type":"string"},` +
		`"solver_shape":{"type":"object","description":"optional: stance (do, shape, forge, orchestrate), capability_summary, reuse_basis, contract_intent"}}}`
	submitShort = `{"type":"object","required":["code"],"properties":{"code":{"type":"string"},"summary":{"type":"string"},` +
		`"parameters":{"type":"array","items":{"type":"object","required":["name","type","required"],"properties":{` +
		`"name":{"type":"string"},"type":{"type":"string"},"description":{"type":"string"},"required":{"type":"boolean"}}}},"notes":{"type":"string"}}}`
)

// submitProgram returns the definition of the tool. With keep, the call may state that the program is kept.
func submitProgram(short, keep bool) openai.Tool {
	parameters, description := submitParameters, "Submit the complete Go source of the method."
	if short {
		parameters = submitShort
	}
	if keep {
		description = "Submit the complete Go source of the method, or unchanged: true where its program is kept."
		parameters = strings.Replace(parameters, `"required":["code"],"properties":{`,
			`"properties":{"unchanged":{"type":"boolean","description":"true: the program is kept; then without code"},`, 1)
	}
	return openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: reply.SubmitName,
		Description: description, Parameters: json.RawMessage(parameters)}}
}

// readReply converts the body of a reply to a single chat completion. If it contains an error instead, the error
// becomes the response's status and body, as if the server had refused the request.
func readReply(response *http.Response, s *seen) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	canonical, err := reply.Canonical(body)
	var failed *reply.ServerError
	switch {
	case errors.As(err, &failed):
		s.status, s.partial = failed.Status, failed.Partial
		response.StatusCode, canonical = failed.Status, failed.Body
	case err != nil:
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(canonical)), int64(len(canonical))
	return response, nil
}

// unusable returns the error for a reply that holds no program. If a token limit cut it off, the model's program is not
// to blame: the same limit would cut off its repair.
func (p *OpenAI) unusable(err error, usage agent.Usage) *Error {
	e := &Error{Type: agent.ErrInvalidCode, Reason: ReasonInvalidPayload, Message: p.scrub(err.Error()), Usage: usage}
	var why *reply.Unusable
	if errors.As(err, &why) {
		e.Unread, e.said = !why.Cut, why.Said
		if why.Cut {
			e.Type, e.Reason = agent.ErrProvider, ReasonCutOff
		}
	}
	return e
}

// seen carries data between send and the transport of its request, in the context: what to send, and what the transport
// observed.
type seen struct {
	model, trace string
	body         []byte // the body to send
	stream       bool   // the reply is a stream of events

	status     int
	header     http.Header
	retryAfter time.Duration
	location   string // target of a redirect
	refused    []byte // body of a reply with a status from 300 on
	head       []byte // beginning of a success reply
	tooLarge   bool   // the reply exceeded MaxReply
	partial    bool   // part of a reply arrived before the error

	charged
}

type seenKey struct{}

// doer is the HTTP client for go-openai. It sends the body in seen, bounds replies, and records refusals.
type doer struct {
	client *http.Client
	base   base
	header http.Header
	limit  int64
}

var errRefused = errors.New("refused") // the refusal is in seen

// Do sends the request that go-openai has built, with the body in seen. For a refusal, or an error in place of a reply,
// it returns errRefused and records the details in seen. It asks the charge before it sends anything.
func (d *doer) Do(r *http.Request) (*http.Response, error) {
	s, _ := r.Context().Value(seenKey{}).(*seen)
	if s == nil {
		return nil, errors.New("provider: a request that nobody asked for") // go-openai sends none by itself
	}
	d.dress(r, s)
	r, err := s.reserve(r)
	if err != nil {
		return nil, err
	}
	response, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	s.status, s.header = response.StatusCode, response.Header
	s.retryAfter = retryAfter(response.Header, time.Now())
	if response.StatusCode < 300 {
		response.Body = &boundedBody{ReadCloser: response.Body, left: d.limit, seen: s}
		if response, err = readReply(response, s); err != nil {
			return nil, err
		}
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	s.location = locationOf(response)
	s.refused, _ = io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // a partial body is used as it is
	return nil, errRefused
}

// dress sets the body, query and headers of the request.
func (d *doer) dress(r *http.Request, s *seen) {
	if s.body != nil {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(s.body))
	}
	r.URL.RawQuery = d.base.query
	if s.stream {
		r.Header.Set("Accept", "text/event-stream")
	}
	if s.trace != "" {
		r.Header.Set("Traceparent", s.trace)
	}
	maps.Copy(r.Header, d.header)
}

// locationOf returns the absolute target of a redirect, or "".
func locationOf(r *http.Response) string {
	if u, err := r.Location(); err == nil {
		return u.String()
	}
	return ""
}

// retryAfter parses Retry-After (seconds or a date) and OpenAI's retry-after-ms. It returns 0 if there is neither.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// A boundedBody reads at most left bytes, and fails with errTooLarge if more follow. It records the beginning in
// seen.head.
type boundedBody struct {
	io.ReadCloser
	left int64
	seen *seen
}

var errTooLarge = errors.New("reply too large")

// maxHead is how many bytes of a reply are kept, to recognize one that cannot be read.
const maxHead = 512

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// A reply of exactly the limit is not too large.
		if n, err := b.ReadCloser.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		b.seen.tooLarge = true
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if missing := maxHead - len(b.seen.head); missing > 0 {
		b.seen.head = append(b.seen.head, p[:min(n, missing)]...)
	}
	return n, err
}
