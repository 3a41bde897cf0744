package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/lazy"
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

// OpenAIOptions configures an OpenAI provider. Start from DefaultOpenAIOptions.
type OpenAIOptions struct {
	Key         string        // sent as the bearer token; "" sends none
	BaseURL     string        // up to and including /v1; a query is sent with every request; "" is OpenAI's own
	Header      http.Header   // sent with every request, replacing default headers
	Secrets     []string      // values, of Header and others, that are never disclosed
	Timeout     time.Duration // of one request; a request that times out is not sent again
	MaxTries    int           // most requests for one question, including the first
	RetryBudget time.Duration // no retry starts later than this after the first request
	// RetryInterval is the first pause. It doubles, with jitter, unless the server sends Retry-After.
	RetryInterval time.Duration
	MaxReply      int64 // most bytes of a reply
	MaxCompletion int   // most tokens of a reply; lowered for models whose server refuses it
	// Context is the size of the model's context in tokens, prompt and reply together. Zero means that it is learned
	// from refusals.
	Context    int
	HTTPClient *http.Client // nil means a default one
	Model      string       // the daemon's own model, whose state Status reports; requests may name others
	// Changed, if set, is called with the first failure when requests begin to fail, whenever the server's words
	// change, and with nil when requests succeed again. It may be called concurrently.
	Changed func(*Failure)
	// Observe, if set, is called for every request with the operation (program or chat), the outcome (ok, canceled, or
	// a reason of Error) and the duration. It may be called concurrently.
	Observe func(operation, outcome string, took time.Duration)
}

// DefaultMaxCompletion is the default of OpenAIOptions.MaxCompletion.
const DefaultMaxCompletion = 16384

// DefaultOpenAIOptions returns options that need at most a key.
func DefaultOpenAIOptions() OpenAIOptions {
	return OpenAIOptions{Timeout: 120 * time.Second, MaxTries: 4, RetryBudget: 60 * time.Second,
		RetryInterval: 500 * time.Millisecond, MaxReply: 8 << 20, MaxCompletion: DefaultMaxCompletion}
}

// validate returns an error that names the first bad option.
func (o OpenAIOptions) validate() error {
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
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
	case o.MaxCompletion < leastReply:
		return errors.New("provider: MaxCompletion must be at least 256")
	case o.Context < 0:
		return errors.New("provider: Context must not be negative")
	}
	return nil
}

// anHour and aDay are how long lessons are remembered. A server may be restarted with other settings, so what it
// refused is tried again after an hour. Figures that it states for its model last longer.
const (
	anHour = time.Hour
	aDay   = 24 * time.Hour
)

// An aspect is one feature of a server or a model that can be learned.
type aspect int

const (
	aspectTools aspect = iota
	aspectShort        // the short schema of the tool
	aspectSystem
	aspectField
	aspectLimit
	aspectContext
	aspectStream
	aspectUncounted // streams without usage
	aspectText      // replies without response_format
	aspects
)

// A Fact is one member of a Profile. If LearnedFrom is empty, nothing was learned and Value is what is tried first.
type Fact[T any] struct {
	Value       T          `json:"value"`
	LearnedFrom string     `json:"learned_from,omitempty"` // the server's words
	At          *time.Time `json:"at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
}

// A Profile describes how a model at its server must be asked, as far as that is known.
type Profile struct {
	Tools      Fact[string] `json:"tools"`       // forced, auto or none
	System     Fact[string] `json:"system"`      // role or merged
	LimitField Fact[string] `json:"limit_field"` // max_completion_tokens, max_tokens, both or none
	Limit      Fact[int]    `json:"limit"`       // tokens of a reply
	Context    Fact[int]    `json:"context"`     // tokens of prompt and reply; 0 means unknown
	StreamOnly Fact[bool]   `json:"stream_only"`
}

// profile is what was learned of a model. Expired facts are ignored.
type profile struct {
	way   way
	facts [aspects]fact
}

type fact struct {
	from      string // the server's words; "" means that nothing was learned
	at, until time.Time
}

// put copies an aspect of the way from.
func (p *profile) put(a aspect, from way, f fact) {
	p.way.take(a, from)
	p.facts[a] = f
}

// take copies one aspect from another way.
func (w *way) take(a aspect, from way) {
	switch a {
	case aspectTools:
		w.tools = from.tools
	case aspectShort:
		w.plain = from.plain
	case aspectSystem:
		w.merged = from.merged
	case aspectField:
		w.field = from.field
	case aspectLimit:
		w.limit = from.limit
	case aspectContext:
		w.context = from.context
	case aspectStream:
		w.stream = from.stream
	case aspectUncounted:
		w.uncounted = from.uncounted
	case aspectText:
		w.text = from.text
	}
}

// known returns the way learned for the model, and the facts of the learned aspects.
func (p *OpenAI) known(model string) (way, [aspects]fact) {
	w, now := p.firstWay(model), time.Now()
	p.mu.Lock()
	learned := p.profiles[model]
	p.mu.Unlock()
	for a := range learned.facts {
		if f := learned.facts[a]; f.from != "" && now.Before(f.until) {
			w.take(aspect(a), learned.way)
		} else {
			learned.facts[a] = fact{}
		}
	}
	return w, learned.facts
}

// maxProfiles bounds the number of models with a profile, because clients choose the names.
const maxProfiles = 1000

// learn stores an aspect of the way for the model.
func (p *OpenAI) learn(model string, l lesson) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.profiles[model]; !ok && len(p.profiles) >= maxProfiles {
		clear(p.profiles) // they are learned again when needed
	}
	learned := p.profiles[model]
	learned.put(l.aspect, l.way, fact{p.scrub(l.from), now, now.Add(l.lasts)})
	p.profiles[model] = learned
}

// Context returns the size of the model's context in tokens, prompt and reply together, or 0 if it is unknown.
func (p *OpenAI) Context(model string) int {
	w, _ := p.known(model)
	return w.context
}

// Profile returns how the model is asked.
func (p *OpenAI) Profile(model string) Profile {
	w, facts := p.known(model)
	system := "role"
	if w.merged {
		system = "merged"
	}
	return Profile{
		Tools:      factOf(w.tools.String(), facts[aspectTools]),
		System:     factOf(system, facts[aspectSystem]),
		LimitField: factOf(w.field.String(), facts[aspectField]),
		Limit:      factOf(w.limit, facts[aspectLimit]),
		Context:    factOf(w.context, facts[aspectContext]),
		StreamOnly: factOf(w.stream, facts[aspectStream]),
	}
}

func factOf[T any](value T, f fact) Fact[T] {
	out := Fact[T]{Value: value, LearnedFrom: f.from}
	if f.from != "" {
		at, until := f.at.UTC(), f.until.UTC()
		out.At, out.ExpiresAt = &at, &until
	}
	return out
}

// chatPath is the path of requests below the base URL.
const chatPath = "/chat/completions"

// A base is a parsed base URL.
type base struct {
	url   string // without query and trailing slash
	query string // sent with every request
	azure bool   // the key is sent in the header api-key
}

// parseBase parses a base URL. It removes chatPath from the end, if a user included it.
func parseBase(text string) base {
	u, err := url.Parse(text)
	if text == "" || err != nil {
		return base{url: text}
	}
	b := base{query: u.RawQuery, azure: strings.Contains(u.Path, "/openai/deployments/") ||
		u.Query().Has("api-version")}
	u.RawQuery, u.Path, u.RawPath = "", strings.TrimSuffix(strings.TrimRight(u.Path, "/"), chatPath), ""
	b.url = u.String()
	return b
}

// WholeURL reports whether the base URL wrongly ends in the path of requests.
func WholeURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), chatPath)
}

// MaskURL returns the URL without its password and the values of its query, for display.
func MaskURL(text string) string {
	if text != "" && !strings.Contains(text, "//") { // without a scheme a host and its port do not parse
		return strings.TrimPrefix(MaskURL("http://"+text), "http://")
	}
	u, err := url.Parse(text)
	if err != nil {
		return "[URL]"
	}
	if u.RawQuery != "" {
		var names []string
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			name, _, named := strings.Cut(pair, "=")
			if !named {
				name = "***" // without "=", the name may be the value
			} else {
				name += "=***"
			}
			names = append(names, name)
		}
		u.RawQuery = strings.Join(names, "&")
	}
	return strings.Replace(u.Redacted(), "xxxxx@", "***@", 1)
}

var versionPath = lazy.Regexp(`/v\d`)

// versioned reports whether the base URL contains a version or a deployment of Azure, which needs none.
func versioned(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (versionPath().MatchString(u.Path) || strings.Contains(u.Path, "/openai"))
}

// withVersion returns the base URL with /v1, which most servers require.
func withVersion(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), chatPath)+"/v1", ""
	return u.String()
}

// leastSecret is the length from which a value counts as a secret. Shorter values occur in ordinary words.
const leastSecret = 6

// secretsOf returns the texts that must not be disclosed.
func secretsOf(o OpenAIOptions) (out []string) {
	add := func(s string) {
		if len(s) >= leastSecret && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if o.Key != "" {
		out = append(out, o.Key)
	}
	for _, s := range o.Secrets {
		add(s)
		if _, credentials, ok := strings.Cut(s, " "); ok { // credentials follow the scheme
			add(credentials)
		}
	}
	u, err := url.Parse(o.BaseURL)
	if err != nil {
		return out
	}
	if password, ok := u.User.Password(); ok && password != "" {
		out = append(out, password)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			add(v)
		}
	}
	return out
}
