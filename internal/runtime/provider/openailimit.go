package provider

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	openai "github.com/sashabaranov/go-openai"
)

// limit bounds a reply in tokens. OpenAI and newer servers read max_completion_tokens; many others read only max_tokens
// and ignore the first name, so that they get both, until one refuses that.
type limit struct {
	tokens int
	names  limitNames
}

type limitNames int

const (
	bothNames limitNames = iota
	newName              // max_completion_tokens
	oldName              // max_tokens
)

// leastLimit is where a limit is not lowered any further: a shorter reply holds no program.
const leastLimit = 1024

func (l limit) apply(r openai.ChatCompletionRequest) openai.ChatCompletionRequest {
	if l.names != oldName {
		r.MaxCompletionTokens = l.tokens
	}
	if l.names != newName {
		//lint:ignore SA1019 deprecated by OpenAI; what other servers read
		r.MaxTokens = l.tokens
	}
	return r
}

// narrower returns the limit to try after a server refused this one, with that text; false when there is none.
func (l limit) narrower(refusal string) (limit, bool) {
	for _, word := range []string{"support", "unrecognized", "unknown", "extra", "unexpected", "same time", "both", "permitted", "deprecated"} {
		if strings.Contains(refusal, word) && l.names < oldName {
			l.names++
			return l, true
		}
	}
	l.tokens /= 2
	return l, l.tokens >= leastLimit
}

// refusesLimit reports whether a refusal is about the limit of the reply: its name, or its size.
func refusesLimit(status int, text string) bool {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return false
	}
	for _, word := range []string{"max_tokens", "max_completion_tokens", "context length", "context_length"} {
		if strings.Contains(strings.ToLower(text), word) {
			return true
		}
	}
	return false
}

// limitOf is the limit of the model's replies: what its server last accepted.
func (p *OpenAI) limitOf(model string) limit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.limits[model]; ok {
		return l
	}
	l := limit{tokens: p.opts.MaxCompletion}
	if p.newNameOnly(model) {
		l.names = newName
	}
	return l
}

func (p *OpenAI) rememberLimit(model string, l limit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.limits) < 1000 { // models are named by clients
		p.limits[model] = l
	}
}

// newNameOnly reports whether the server or the model is known to refuse max_tokens beside the newer name.
func (p *OpenAI) newNameOnly(model string) bool {
	u, err := url.Parse(p.opts.BaseURL)
	if p.opts.BaseURL == "" || err == nil && (strings.HasSuffix(u.Hostname(), "openai.com") || strings.HasSuffix(u.Hostname(), "azure.com")) {
		return true
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} { // go-openai refuses it for these
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}

// sendLimited makes a request, and the same again with another limit of its reply while a server refuses the one that it has.
func (p *OpenAI) sendLimited(ctx context.Context, q *question, request openai.ChatCompletionRequest, usage *agent.Usage) (openai.ChatCompletionResponse, time.Duration, error) {
	first := p.limitOf(request.Model)
	l, lasting := first, first
	for {
		started := time.Now()
		response, retryAfter, err := p.send(ctx, q, l.apply(request), l.tokens)
		var failed *Error
		var refused *ChargeError
		errors.As(err, &failed)
		if errors.As(err, &refused) {
			return response, 0, err // nothing was sent
		}
		usage.ModelRequests++
		usage.PromptTokens += reported(response.Usage.PromptTokens)
		usage.CompletionTokens += reported(response.Usage.CompletionTokens)
		p.observe(q.operation, err, time.Since(started))
		if failed == nil || !refusesLimit(failed.status, failed.Message) {
			if err == nil && lasting != first {
				p.rememberLimit(request.Model, lasting)
			}
			return response, retryAfter, err
		}
		next, more := l.narrower(strings.ToLower(failed.Message))
		if !more {
			return response, retryAfter, err
		}
		if l = next; !strings.Contains(failed.Message, "context") { // that one is of this prompt only
			lasting = l
		}
	}
}
