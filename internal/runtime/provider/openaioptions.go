package provider

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

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
