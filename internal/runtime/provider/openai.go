package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Reasons of an Error.
const (
	ReasonRateLimited    = "rate_limited"
	ReasonServerError    = "server_error"
	ReasonNetwork        = "network"
	ReasonTimeout        = "timeout"
	ReasonRejected       = "rejected"
	ReasonNoAnswer       = "no_answer"
	ReasonInvalidPayload = "invalid_payload"
)

// OpenAIOptions configure an OpenAI provider. Start from DefaultOpenAIOptions.
type OpenAIOptions struct {
	Key           string        // sent as the bearer token; "" sends none
	BaseURL       string        // up to and with /v1; "" is OpenAI's own
	Timeout       time.Duration // of one request; a request that takes longer is not sent again
	MaxTries      int           // requests made for one question, the first included
	RetryBudget   time.Duration // no retry starts later than this after the first request
	RetryInterval time.Duration // the first pause; it doubles, with jitter, unless the server says Retry-After
	MaxReply      int64         // bytes read of a reply
	HTTPClient    *http.Client  // nil for one of our own
	// Observe, if set, is told of every request: operation (program or chat), outcome (ok, or a reason of Error) and how
	// long it took. It is called concurrently.
	Observe func(operation, outcome string, took time.Duration)
}

// DefaultOpenAIOptions returns options that need at most a key.
func DefaultOpenAIOptions() OpenAIOptions {
	return OpenAIOptions{Timeout: 120 * time.Second, MaxTries: 4, RetryBudget: 60 * time.Second, RetryInterval: 500 * time.Millisecond, MaxReply: 8 << 20}
}

func (o OpenAIOptions) validate() error {
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("provider: BaseURL must be an http or https URL such as http://127.0.0.1:11434/v1")
		}
	}
	switch {
	case strings.ContainsFunc(o.Key, func(r rune) bool { return r < 0x21 || r > 0x7e }):
		return errors.New("provider: Key must not contain white space, control characters or anything beyond ASCII")
	case o.Timeout <= 0:
		return errors.New("provider: Timeout must be above 0")
	case o.MaxTries < 1:
		return errors.New("provider: MaxTries must be at least 1")
	case o.RetryBudget < 0:
		return errors.New("provider: RetryBudget must not be negative")
	case o.RetryInterval <= 0:
		return errors.New("provider: RetryInterval must be above 0")
	case o.MaxReply < 1<<10:
		return errors.New("provider: MaxReply must be at least 1024")
	}
	return nil
}

// OpenAI speaks to an OpenAI-compatible server. It is safe for concurrent use.
type OpenAI struct {
	opts    OpenAIOptions
	client  *openai.Client
	secrets []string

	mu    sync.Mutex
	plain map[string]bool // what a server has refused, by capability and model; guarded by mu
}

// NewOpenAI returns a provider, or an error that names the bad option. Nothing is sent yet.
func NewOpenAI(o OpenAIOptions) (*OpenAI, error) {
	o.Key = strings.TrimSpace(o.Key)
	if err := o.validate(); err != nil {
		return nil, err
	}
	client := o.HTTPClient
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxResponseHeaderBytes = 64 << 10
		transport.MaxIdleConnsPerHost = 16
		client = &http.Client{Transport: transport}
	}
	config := openai.DefaultConfig(o.Key)
	if o.BaseURL != "" {
		config.BaseURL = strings.TrimRight(o.BaseURL, "/")
	}
	config.HTTPClient = &doer{client: client, limit: o.MaxReply}
	p := &OpenAI{opts: o, client: openai.NewClientWithConfig(config), plain: map[string]bool{}}
	if o.Key != "" {
		p.secrets = append(p.secrets, o.Key)
	}
	if u, err := url.Parse(o.BaseURL); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && password != "" {
			p.secrets = append(p.secrets, password)
		}
	}
	return p, nil
}

// Name implements Provider.
func (p *OpenAI) Name() string { return "openai" }

// Capabilities that a server may lack.
const (
	capTools  = "tools"
	capSchema = "json_schema"
)

// Program implements Provider. The model is made to call submit_program; a server that refuses tools is asked once
// more without them, and without them from then on.
func (p *OpenAI) Program(ctx context.Context, r Request) (Reply, error) {
	request := openai.ChatCompletionRequest{Model: r.Model, Messages: messages(r.Messages)}
	withTools := request
	withTools.Tools = []openai.Tool{submitProgram()}
	withTools.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: submitName}}
	response, usage, err := p.withFallback(ctx, "program", capTools, r.Model, r.TraceParent, withTools, request)
	if err != nil {
		return Reply{}, err
	}
	reply, reason := readProgram(response)
	if reason != "" {
		return Reply{}, &Error{Type: agent.ErrInvalidCode, Reason: ReasonInvalidPayload, Message: p.scrub(reason), Usage: usage}
	}
	reply.Usage, reply.Model = usage, response.Model
	if reply.Model == "" {
		reply.Model = r.Model
	}
	return reply, nil
}

// Chat implements Provider.
func (p *OpenAI) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	plain := openai.ChatCompletionRequest{Model: r.Model, Messages: messages(r.Messages)}
	request := plain
	if len(r.Schema) > 0 {
		request.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "reply", Schema: r.Schema}}
	}
	response, usage, err := p.withFallback(ctx, "chat", capSchema, r.Model, r.TraceParent, request, plain)
	if err != nil {
		return ChatReply{}, err
	}
	content := ""
	if len(response.Choices) > 0 {
		content = strings.TrimSpace(withoutThoughts(contentOf(response.Choices[0].Message)))
	}
	if content == "" {
		return ChatReply{}, &Error{Type: agent.ErrProvider, Reason: ReasonNoAnswer, Message: "the model answered with nothing", Usage: usage}
	}
	reply := ChatReply{Content: content, Model: response.Model, Usage: usage}
	if reply.Model == "" {
		reply.Model = r.Model
	}
	return reply, nil
}

// withFallback sends rich, or plain where the server is known to refuse, or now refuses, what rich has more.
func (p *OpenAI) withFallback(ctx context.Context, operation, capability, model, trace string, rich, plain openai.ChatCompletionRequest) (openai.ChatCompletionResponse, agent.Usage, error) {
	if len(rich.Tools) == 0 && rich.ResponseFormat == nil || p.lacks(capability, model) {
		return p.ask(ctx, operation, trace, plain)
	}
	response, usage, err := p.ask(ctx, operation, trace, rich)
	var failed *Error
	if !errors.As(err, &failed) || !failed.unsupported {
		return response, usage, err
	}
	response, more, err := p.ask(ctx, operation, trace, plain)
	usage.Add(more)
	if err == nil {
		p.remember(capability, model)
	} else if errors.As(err, &failed) {
		failed.Usage = usage
	}
	return response, usage, err
}

func (p *OpenAI) lacks(capability, model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plain[capability+" "+model]
}

func (p *OpenAI) remember(capability, model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plain) < 1000 { // models are named by clients
		p.plain[capability+" "+model] = true
	}
}

// ask sends one question until there is an answer, within the budget. The error is an *Error with the usage of all
// tries, or the cause of ctx.
func (p *OpenAI) ask(ctx context.Context, operation, trace string, request openai.ChatCompletionRequest) (openai.ChatCompletionResponse, agent.Usage, error) {
	var usage agent.Usage
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.Multiplier, pause.MaxInterval = p.opts.RetryInterval, 2, 16*p.opts.RetryInterval
	response, err := backoff.Retry(ctx, func() (openai.ChatCompletionResponse, error) {
		usage.ModelRequests++
		started := time.Now()
		response, retryAfter, err := p.send(ctx, trace, request)
		usage.PromptTokens += max(response.Usage.PromptTokens, 0)
		usage.CompletionTokens += max(response.Usage.CompletionTokens, 0)
		p.observe(operation, err, time.Since(started))
		var failed *Error
		switch {
		case err == nil || errors.As(err, &failed) && failed.transient && retryAfter <= 0:
			return response, err
		case failed != nil && failed.transient && retryAfter <= p.opts.RetryBudget:
			return response, &laterError{failed, &backoff.RetryAfterError{Duration: retryAfter}}
		}
		return response, backoff.Permanent(err)
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(uint(p.opts.MaxTries)), backoff.WithMaxElapsedTime(max(p.opts.RetryBudget, 1)))
	if err == nil {
		return response, usage, nil
	}
	if ctx.Err() != nil {
		return response, usage, context.Cause(ctx)
	}
	var failed *Error
	if !errors.As(err, &failed) {
		failed = &Error{Type: agent.ErrProvider, Reason: ReasonNetwork, Message: p.scrub(err.Error())}
	}
	final := *failed
	final.Usage = usage
	if usage.ModelRequests > 1 {
		final.Message += fmt.Sprintf(" (after %d tries)", usage.ModelRequests)
	}
	return response, usage, &final
}

// laterError is a failure after which the server said when to come back.
type laterError struct {
	failed *Error
	later  *backoff.RetryAfterError
}

func (e *laterError) Error() string   { return e.failed.Error() }
func (e *laterError) Unwrap() []error { return []error{e.failed, e.later} }

func (p *OpenAI) observe(operation string, err error, took time.Duration) {
	if p.opts.Observe == nil {
		return
	}
	outcome := "ok"
	var failed *Error
	if errors.As(err, &failed) {
		outcome = failed.Reason
	} else if err != nil {
		outcome = "canceled"
	}
	p.opts.Observe(operation, outcome, took)
}

var errRequestTimeout = errors.New("the model did not answer in time")

// send makes one request.
func (p *OpenAI) send(ctx context.Context, trace string, request openai.ChatCompletionRequest) (openai.ChatCompletionResponse, time.Duration, error) {
	limited, cancel := context.WithTimeoutCause(ctx, p.opts.Timeout, errRequestTimeout)
	defer cancel()
	seen := &seen{trace: trace}
	response, err := p.client.CreateChatCompletion(context.WithValue(limited, seenKey{}, seen), request)
	if err == nil {
		return response, 0, nil
	}
	if ctx.Err() != nil {
		return response, 0, context.Cause(ctx)
	}
	if limited.Err() != nil {
		return response, 0, &Error{Type: agent.ErrProvider, Reason: ReasonTimeout, Message: fmt.Sprintf("the model did not answer within %s", p.opts.Timeout)}
	}
	return response, seen.retryAfter, p.classify(err, seen)
}

// classify turns what a request ended in into an *Error.
func (p *OpenAI) classify(err error, seen *seen) *Error {
	text := p.scrub(errorText(err))
	status := seen.status
	e := &Error{Type: agent.ErrProvider, status: status}
	switch {
	case seen.tooLarge:
		e.Reason, e.Message = ReasonNoAnswer, fmt.Sprintf("the model's server sent more than %d bytes", p.opts.MaxReply)
	case status == 0:
		e.Reason, e.Message, e.transient = ReasonNetwork, "the model's server cannot be reached: "+text, true
	case status == http.StatusTooManyRequests:
		e.Reason, e.Message, e.transient = ReasonRateLimited, "the model's server limits the rate: "+text, !strings.Contains(text, "insufficient_quota")
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		e.Reason, e.Message, e.transient = ReasonServerError, fmt.Sprintf("the model's server answered %d: %s", status, text), true
	case status >= 400 || status >= 300:
		e.Reason, e.Message = ReasonRejected, fmt.Sprintf("the model's server refused the request with %d: %s", status, text)
	default:
		// The server said 200, but what followed broke off or was no chat completion.
		e.Reason, e.Message, e.transient = ReasonNetwork, "the model's server sent a reply that cannot be read: "+text, true
	}
	e.unsupported = unsupported(status, text)
	if e.unsupported {
		e.transient = false
	}
	return e
}

// unsupported guesses whether a refusal is about tools or structured output: servers say it in many ways. Any 400
// may be one, for asking once more costs little; others must say the word.
func unsupported(status int, text string) bool {
	text = strings.ToLower(text)
	names := strings.Contains(text, "tool") || strings.Contains(text, "function") || strings.Contains(text, "response_format") || strings.Contains(text, "json_schema")
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound, http.StatusNotImplemented, http.StatusInternalServerError:
		return names
	}
	return false
}

func errorText(err error) string {
	var api *openai.APIError
	var other *openai.RequestError
	var wrapped *url.Error
	switch {
	case errors.As(err, &api):
		if code, ok := api.Code.(string); ok && code != "" {
			return code + ": " + api.Message
		}
		return api.Message
	case errors.As(err, &other):
		body := strings.TrimSpace(string(other.Body))
		if body == "" {
			return "no reason given"
		}
		return body
	case errors.As(err, &wrapped):
		return wrapped.Err.Error() // without the URL, which may hold a password
	}
	return err.Error()
}

// scrub removes what must not be told and shortens the rest.
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

func messages(in []Message) []openai.ChatCompletionMessage {
	out := make([]openai.ChatCompletionMessage, len(in))
	for i, m := range in {
		out[i] = openai.ChatCompletionMessage{Role: m.Role, Content: m.Content}
	}
	return out
}

// seen is what a request's transport noticed, handed back through the context.
type seen struct {
	trace      string
	status     int
	retryAfter time.Duration
	tooLarge   bool
}

type seenKey struct{}

// doer is the HTTP client that go-openai is given: it bounds replies, and notes status and Retry-After.
type doer struct {
	client *http.Client
	limit  int64
}

func (d *doer) Do(r *http.Request) (*http.Response, error) {
	s, _ := r.Context().Value(seenKey{}).(*seen)
	if s == nil {
		s = &seen{}
	}
	if s.trace != "" {
		r.Header.Set("Traceparent", s.trace)
	}
	response, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	s.status = response.StatusCode
	s.retryAfter = retryAfter(response.Header, time.Now())
	response.Body = &boundedBody{ReadCloser: response.Body, left: d.limit, seen: s}
	return response, nil
}

// retryAfter reads Retry-After (seconds or a date) and OpenAI's retry-after-ms; 0 when there is none.
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

type boundedBody struct {
	io.ReadCloser
	left int64
	seen *seen
}

var errTooLarge = errors.New("reply too large")

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Only a reply that goes on is too large.
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
	return n, err
}

const submitName = "submit_program"

func submitProgram() openai.Tool {
	return openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name:        submitName,
		Description: "Submit the complete Go source of the method.",
		Parameters: json.RawMessage(`{"type":"object","required":["code"],"properties":{` +
			`"code":{"type":"string","description":"The whole Go source file: package tool, imports, func Run."},` +
			`"notes":{"type":"string","description":"One or two sentences on how it works. Optional."},` +
			`"solver_shape":{"type":"object","description":"Optional self-description: stance (do, shape, forge or orchestrate), capability_summary, reuse_basis, contract_intent."}}}`),
	}}
}
