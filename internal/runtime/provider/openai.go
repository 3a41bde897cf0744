package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Values of Error.Reason.
const (
	ReasonRateLimited    = "rate_limited"
	ReasonServerError    = "server_error"
	ReasonNetwork        = "network"
	ReasonTimeout        = "timeout"
	ReasonRejected       = "rejected"
	ReasonNoAnswer       = "no_answer"
	ReasonInvalidPayload = "invalid_payload"
	ReasonCutOff         = "cut_off" // a token limit ended the reply before its answer was complete

	ReasonNotSent = "not_sent" // stands for a *ChargeError
)

// OpenAI is a Provider that asks an OpenAI-compatible server. It learns from refusals how the server wants to be asked.
// It is safe for concurrent use.
type OpenAI struct {
	opts    OpenAIOptions
	client  *openai.Client
	doer    *doer
	secrets []string    // texts that must not be disclosed
	asked   atomic.Bool // a question was asked

	mu       sync.Mutex
	profiles map[string]profile // guarded by mu; what was learned, by model
	health   health             // guarded by mu
}

// NewOpenAI returns a provider, or an error that names the bad option. It sends nothing.
func NewOpenAI(o OpenAIOptions) (*OpenAI, error) {
	o.Key = strings.TrimSpace(o.Key)
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &OpenAI{opts: o, secrets: secretsOf(o), profiles: map[string]profile{}}
	b := parseBase(o.BaseURL)
	config := openai.DefaultConfig(o.Key)
	if b.url != "" {
		config.BaseURL = b.url
	}
	if b.azure && o.Key != "" {
		// This type sends the key as api-key and leaves the address unchanged.
		config.APIType = openai.APITypeCloudflareAzure
	}
	p.doer = &doer{client: httpClient(o.HTTPClient), base: b, header: o.Header, limit: o.MaxReply}
	config.HTTPClient = p.doer
	p.client = openai.NewClientWithConfig(config)
	return p, nil
}

// httpClient returns a copy of the client, or a default one for nil. It follows no redirects, because following one
// would turn the POST of a completion into a GET of a page.
func httpClient(given *http.Client) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxResponseHeaderBytes = 64 << 10
		transport.MaxIdleConnsPerHost = 16
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// Name implements Provider.
func (p *OpenAI) Name() string { return "openai" }

// Program implements Provider. The model must call submit_program, if the server can require that; see Profile.
func (p *OpenAI) Program(ctx context.Context, r Request) (Reply, error) {
	response, usage, err := p.ask(ctx, question{operation: "program", model: r.Model, trace: r.TraceParent,
		charge: r.Charge, messages: r.Messages, tool: true, keep: r.MayKeep})
	response, failed := heard(response, err)
	if failed == nil && err != nil {
		return Reply{Usage: usage}, err
	}
	read := reply.Program
	if r.MayKeep {
		read = reply.Recheck
	}
	found, err := read(response)
	switch {
	case err != nil && failed != nil:
		return Reply{}, failed
	case err != nil:
		return Reply{}, p.unusable(err, usage)
	}
	return Reply{Code: found.Code, Unchanged: found.Unchanged, Notes: found.Notes, SolverShape: found.SolverShape,
		Declaration: found.Declaration, Form: found.Form, Usage: usage, Model: cmp.Or(response.Model, r.Model)}, nil
}

// heard returns the model's text as a response if the server refused it as unreadable but repeated it: it may still
// contain an answer. Otherwise it returns response and nil.
func heard(response openai.ChatCompletionResponse, err error) (openai.ChatCompletionResponse, *Error) {
	var failed *Error
	if !errors.As(err, &failed) || failed.said == "" {
		return response, nil
	}
	return openai.ChatCompletionResponse{Choices: []openai.ChatCompletionChoice{{Message: openai.ChatCompletionMessage{Role: "assistant", Content: failed.said}}}}, failed
}

// Chat implements Provider.
func (p *OpenAI) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	response, usage, err := p.ask(ctx, question{operation: "chat", model: r.Model, trace: r.TraceParent,
		charge: r.Charge, messages: r.Messages, schema: r.Schema})
	response, failed := heard(response, err)
	if failed == nil && err != nil {
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

// observe reports a request to opts.Observe.
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
