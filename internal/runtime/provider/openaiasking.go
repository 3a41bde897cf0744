package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// asking is a question in progress: how it is asked now, and what it has cost so far.
type asking struct {
	p       *OpenAI
	q       *question
	way     way
	lessons []lesson // of refusals; learned once the way is accepted
	changes int      // number of changes of the way
	guessed bool     // the way is a guess, from which nothing is learned

	began time.Time
	tries int                         // failed attempts so far
	pause *backoff.ExponentialBackOff // next pause between attempts
	usage agent.Usage                 // of the requests that reached a server
	// requests counts all requests, also those that reached no server
	requests int
}

const (
	// maxChanges bounds how often a question is asked in another way.
	maxChanges = 16
	// loadingPause is the pause before the next request to a server that is loading its model.
	loadingPause = 2 * time.Second
)

// ask sends requests for a question until it is answered, within the retry budget. The error is an *Error with the
// usage of all attempts, a *ChargeError, or the cause of ctx.
func (p *OpenAI) ask(ctx context.Context, q question) (openai.ChatCompletionResponse, agent.Usage, error) {
	p.asked.Store(true)
	a := &asking{p: p, q: &q, began: time.Now(), pause: backoff.NewExponentialBackOff()}
	a.way, _ = p.known(q.model)
	a.pause.InitialInterval, a.pause.Multiplier, a.pause.MaxInterval = p.opts.RetryInterval, 2, 16*p.opts.RetryInterval
	response, err := backoff.Retry(ctx, func() (openai.ChatCompletionResponse, error) {
		if ctx.Err() != nil { // send nothing more
			return openai.ChatCompletionResponse{}, backoff.Permanent(context.Cause(ctx))
		}
		response, err := a.accepted(ctx)
		return response, a.again(err)
	}, backoff.WithBackOff(&backoff.ZeroBackOff{}), backoff.WithMaxElapsedTime(0))
	if err != nil {
		err = a.failure(ctx, err)
	}
	p.note(ctx, q.model, err)
	return response, a.usage, err
}

// failure converts the last error of a question into the error for the caller.
func (a *asking) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *ChargeError
	if errors.As(err, &refused) {
		return &ChargeError{Err: refused.Err, Usage: a.usage}
	}
	var failed *Error
	if !errors.As(err, &failed) {
		failed = &Error{Type: agent.ErrProvider, Reason: ReasonNetwork, Message: a.p.scrub(err.Error())}
	}
	last := *failed
	last.Usage = a.usage
	if a.requests > 1 {
		last.Message += fmt.Sprintf(" (after %d requests)", a.requests)
	}
	return &last
}

// again decides whether the same request may be sent again. It returns nil if err is nil, a *laterError to retry after
// a pause, or a permanent error.
func (a *asking) again(err error) error {
	var failed *Error
	if err == nil {
		return nil
	}
	if !errors.As(err, &failed) {
		return backoff.Permanent(err)
	}
	pause, budget := a.pause.NextBackOff(), a.p.opts.RetryBudget
	switch {
	case failed.loading:
		pause, budget = loadingPause, max(budget, a.p.opts.Timeout)
		if estimate := failed.refusal.estimate; estimate > 0 {
			pause = min(pause, estimate)
		}
	case !failed.transient:
		return backoff.Permanent(err)
	default:
		if a.tries++; a.tries >= a.p.opts.MaxTries {
			return backoff.Permanent(err)
		}
	}
	if failed.retryAfter > 0 {
		pause = failed.retryAfter
	}
	if time.Since(a.began)+pause > budget {
		return backoff.Permanent(err)
	}
	return &laterError{failed, &backoff.RetryAfterError{Duration: pause}}
}

// laterError is a failure after which the same request may be sent again, after a pause.
type laterError struct {
	failed *Error
	later  *backoff.RetryAfterError
}

func (e *laterError) Error() string { return e.failed.Error() }

func (e *laterError) Unwrap() []error { return []error{e.failed, e.later} }

// accepted sends a request. While the server refuses it for something that it lacks, accepted asks in another way.
func (a *asking) accepted(ctx context.Context) (openai.ChatCompletionResponse, error) {
	for {
		response, err := a.request(ctx)
		var failed *Error
		if err == nil {
			for _, l := range a.lessons {
				if !a.guessed {
					a.p.learn(a.q.model, l)
				}
			}
			return response, nil
		}
		if !errors.As(err, &failed) || failed.refusal == nil || a.changes >= maxChanges || !a.change(failed.refusal) {
			return response, err
		}
	}
}

// change changes the way after a refusal, if there is another way left to try.
func (a *asking) change(r *refusal) bool {
	l, left := learnFrom(a.q, a.way, r)
	if l.sure {
		a.p.learn(a.q.model, l)
	}
	if left {
		a.lessons = append(a.lessons, l)
		a.way = l.way
		a.changes++
	}
	if left || l.sure || a.guessed {
		return left
	}
	next, ok := guess(a.way, r)
	if ok {
		a.way, a.guessed = next, true
		a.changes++
	}
	return ok
}

// request sends one request, and counts and reports it.
func (a *asking) request(ctx context.Context) (openai.ChatCompletionResponse, error) {
	started := time.Now()
	response, reached, err := a.p.send(ctx, a.q, a.way)
	var refused *ChargeError
	if errors.As(err, &refused) {
		return response, err // nothing was sent
	}
	a.requests++
	if reached {
		a.usage.ModelRequests++
	}
	a.usage.PromptTokens += reported(response.Usage.PromptTokens)
	a.usage.CompletionTokens += reported(response.Usage.CompletionTokens)
	a.p.observe(a.q.operation, err, time.Since(started))
	return response, err
}

// send sends one request if its charge permits it, and settles the charge. reached is false if the request certainly
// did not leave the daemon.
func (p *OpenAI) send(ctx context.Context, q *question, w way) (response openai.ChatCompletionResponse, reached bool,
	err error) {
	limited, cancel := context.WithTimeoutCause(ctx, p.opts.Timeout, errRequestTimeout)
	defer cancel()
	body, most := q.body(w)
	seen := &seen{model: q.model, trace: q.trace, body: body, stream: w.stream,
		charged: charged{charge: q.charge, completion: int64(most)}}
	// The request for go-openai is empty, because it would reject some parameters for some models. The transport sends
	// our body.
	response, err = p.client.CreateChatCompletion(context.WithValue(limited, seenKey{}, seen),
		openai.ChatCompletionRequest{})
	var failed *Error
	switch {
	case err == nil:
	case seen.unpaid != nil && ctx.Err() == nil:
		return response, false, &ChargeError{Err: seen.unpaid}
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = &Error{Type: agent.ErrProvider, Reason: ReasonTimeout,
			Message: fmt.Sprintf("the model did not answer within %s; raise --provider-timeout if it needs longer",
				p.opts.Timeout)}
	default:
		failed = p.classify(err, seen)
		err = failed
	}
	seen.bill(response.Usage, err, failed != nil && failed.free)
	return response, !seen.unsent(), err
}

// A way determines how a question is put to a server: which features the request uses.
type way struct {
	tools  toolsWay
	plain  bool // use the tool's short schema
	merged bool // put the system's text into the user's message

	field   fieldWay
	tried   bool // the other name was refused, too
	limit   int  // most tokens of a reply
	context int  // tokens of the model's context, prompt and reply together; 0 means unknown
	prompt  int  // tokens of this question's prompt as counted by the server; 0 means unknown
	half    int  // how often the reply's part of the context was halved for this question

	stream    bool // ask for a stream, which is joined
	flipped   bool // a stream was refused or demanded for this question
	uncounted bool // ask for a stream without usage
	text      bool // do not ask for JSON by response_format
}

// toolsWay determines how the model is made to call the tool.
type toolsWay int

const (
	toolsNamed    toolsWay = iota // require it by name
	toolsRequired                 // require any tool, which means the same with a single tool
	toolsAuto                     // the model decides
	toolsNone                     // no tool: the program comes as text
)

// choice returns the request's tool_choice, or nil to omit it.
func (t toolsWay) choice() any {
	switch t {
	case toolsNamed:
		return openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: reply.SubmitName}}
	case toolsRequired:
		return "required"
	}
	return nil // servers default to auto, and some refuse the word
}

func (t toolsWay) String() string {
	return [...]string{"forced", "forced", "auto", "none"}[t]
}

// fieldWay selects the parameters that limit a reply. OpenAI and newer servers read max_completion_tokens. Many others
// read only max_tokens and ignore the first, so both are sent until a server refuses that.
type fieldWay int

const (
	fieldBoth fieldWay = iota
	fieldNew
	fieldOld
	fieldNone
)

// Names of the parameters that limit a reply.
const (
	newField = "max_completion_tokens"
	oldField = "max_tokens"
)

func (f fieldWay) String() string {
	return [...]string{"both", newField, oldField, "none"}[f]
}

// leastReply is the lowest limit of a reply, in tokens. A shorter reply cannot hold a program.
const leastReply = 256

// room returns how many tokens the reply may have: the limit, but not more than the prompt leaves of the context.
func (w way) room(q *question) int {
	most := w.limit
	if w.context > 0 {
		prompt := w.prompt
		if prompt == 0 {
			prompt = q.tokens()
		}
		most = min(most, max(w.context-prompt, leastReply))
	}
	return max(most>>w.half, 1)
}

// plainest returns the way that demands the least of a server.
func (w way) plainest() way {
	w.tools, w.merged, w.text = toolsNone, true, true
	if w.field == fieldBoth {
		w.field = fieldOld
	}
	return w
}

// firstWay returns the way in which a model is asked before anything is learned of it.
func (p *OpenAI) firstWay(model string) way {
	w := way{limit: p.opts.MaxCompletion, context: p.opts.Context}
	if newNameOnly(p.opts.BaseURL, model) {
		w.field = fieldNew
	}
	return w
}

// newNameOnly reports whether the server or the model is known to refuse max_tokens in addition to the newer name.
func newNameOnly(baseURL, model string) bool {
	u, err := url.Parse(baseURL)
	if baseURL == "" || err == nil && (strings.HasSuffix(u.Hostname(), "openai.com") ||
		strings.HasSuffix(u.Hostname(), "azure.com")) {
		return true
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
