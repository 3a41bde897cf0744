package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
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
	ReasonCutOff         = "cut_off" // a limit of tokens ended the reply before its answer was complete

	ReasonNotSent = "not_sent" // of a *ChargeError
)

// OpenAI speaks to an OpenAI-compatible server. It is safe for concurrent use.
type OpenAI struct {
	opts    OpenAIOptions
	client  *openai.Client
	secrets []string

	mu     sync.Mutex
	plain  map[string]bool  // what a server has refused, by capability and model; guarded by mu
	limits map[string]limit // of replies, where a server has refused the first one, by model; guarded by mu
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
	p := &OpenAI{opts: o, client: openai.NewClientWithConfig(config), plain: map[string]bool{}, limits: map[string]limit{}}
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
	withTools.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: reply.SubmitName}}
	response, usage, err := p.withFallback(ctx, question{operation: "program", capability: capTools, model: r.Model, trace: r.TraceParent, charge: r.Charge, rich: withTools, plain: request})
	if err != nil {
		return Reply{Usage: usage}, err
	}
	found, err := reply.Program(response)
	if err != nil {
		return Reply{}, p.unusable(err, usage)
	}
	return Reply{Code: found.Code, Notes: found.Notes, SolverShape: found.SolverShape, Declaration: found.Declaration, Form: found.Form, Usage: usage, Model: cmp.Or(response.Model, r.Model)}, nil
}

// Chat implements Provider.
func (p *OpenAI) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	plain := openai.ChatCompletionRequest{Model: r.Model, Messages: messages(r.Messages)}
	request := plain
	if len(r.Schema) > 0 {
		request.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "reply", Schema: r.Schema}}
	}
	response, usage, err := p.withFallback(ctx, question{operation: "chat", capability: capSchema, model: r.Model, trace: r.TraceParent, charge: r.Charge, rich: request, plain: plain})
	if err != nil {
		return ChatReply{Usage: usage}, err
	}
	content, err := reply.Text(response)
	if err != nil {
		failed := p.unusable(err, usage)
		if failed.Reason == ReasonInvalidPayload {
			failed.Type, failed.Reason = agent.ErrProvider, ReasonNoAnswer
		}
		return ChatReply{}, failed
	}
	return ChatReply{Content: content, Model: cmp.Or(response.Model, r.Model), Usage: usage}, nil
}

// A question is what one operation asks of a model, in two ways.
type question struct {
	operation, model, trace string
	capability              string // what a server needs for rich
	charge                  Charge
	rich, plain             openai.ChatCompletionRequest // the same question, the second without that capability
}

// withFallback asks in the rich way, or in the plain one where the server is known to refuse, or now refuses, what the rich one needs.
func (p *OpenAI) withFallback(ctx context.Context, q question) (openai.ChatCompletionResponse, agent.Usage, error) {
	if len(q.rich.Tools) == 0 && q.rich.ResponseFormat == nil || p.lacks(q.capability, q.model) {
		return p.ask(ctx, &q, q.plain)
	}
	response, usage, err := p.ask(ctx, &q, q.rich)
	var failed *Error
	if !errors.As(err, &failed) || !failed.unsupported {
		return response, usage, err
	}
	response, more, err := p.ask(ctx, &q, q.plain)
	usage.Add(more)
	if err == nil {
		p.remember(q.capability, q.model)
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
func (p *OpenAI) ask(ctx context.Context, q *question, request openai.ChatCompletionRequest) (openai.ChatCompletionResponse, agent.Usage, error) {
	var usage agent.Usage
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.Multiplier, pause.MaxInterval = p.opts.RetryInterval, 2, 16*p.opts.RetryInterval
	response, err := backoff.Retry(ctx, func() (openai.ChatCompletionResponse, error) {
		if ctx.Err() != nil { // nothing is sent any more
			return openai.ChatCompletionResponse{}, backoff.Permanent(context.Cause(ctx))
		}
		response, retryAfter, err := p.sendLimited(ctx, q, request, &usage)
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
	var refused *ChargeError
	if errors.As(err, &refused) {
		return response, usage, &ChargeError{Err: refused.Err, Usage: usage}
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

// send makes one request, if its charge lets it pass.
func (p *OpenAI) send(ctx context.Context, q *question, request openai.ChatCompletionRequest, most int) (openai.ChatCompletionResponse, time.Duration, error) {
	limited, cancel := context.WithTimeoutCause(ctx, p.opts.Timeout, errRequestTimeout)
	defer cancel()
	seen := &seen{trace: q.trace, charged: charged{charge: q.charge, completion: int64(most)}}
	response, err := p.client.CreateChatCompletion(context.WithValue(limited, seenKey{}, seen), request)
	seen.bill(seen.status, response.Usage, err)
	switch {
	case err == nil:
		return response, 0, nil
	case seen.refused != nil && ctx.Err() == nil:
		return response, 0, &ChargeError{Err: seen.refused}
	case ctx.Err() != nil:
		return response, 0, context.Cause(ctx)
	case limited.Err() != nil:
		return response, 0, &Error{Type: agent.ErrProvider, Reason: ReasonTimeout, Message: fmt.Sprintf("the model did not answer within %s", p.opts.Timeout)}
	}
	return response, seen.retryAfter, p.classify(err, seen)
}

func messages(in []Message) []openai.ChatCompletionMessage {
	out := make([]openai.ChatCompletionMessage, len(in))
	for i, m := range in {
		out[i] = openai.ChatCompletionMessage{Role: m.Role, Content: m.Content}
	}
	return out
}

func submitProgram() openai.Tool {
	return openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name:        reply.SubmitName,
		Description: "Submit the complete Go source of the method.",
		Parameters: json.RawMessage(`{"type":"object","required":["code"],"properties":{` +
			`"code":{"type":"string"},"summary":{"type":"string"},` +
			`"parameters":{"type":"array","items":{"type":"object","required":["name","type","required"],"properties":{` +
			`"name":{"type":"string"},"type":{"enum":["string","number","integer","boolean","array","object","any"]},"description":{"type":"string"},` +
			`"required":{"type":"boolean"},"default":{},"schema":{"type":"object"}}}},` +
			`"returns":{"type":"object"},"notes":{"type":"string"},` +
			`"solver_shape":{"type":"object","description":"optional: stance (do, shape, forge, orchestrate), capability_summary, reuse_basis, contract_intent"}}}`),
	}}
}
