package app

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Lines is a list whose items may contain commas. It is set by repeating a flag, or by a text with one item per line.
type Lines []string

// ParseLines reads one item per line. It skips empty lines and lines that start with #.
func ParseLines(text string) (out Lines) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// ModelOptions configure requests to the model's server beyond its address and key.
type ModelOptions struct {
	// ModelHeaders are headers of every request to the model's server, as NAME=VALUE. Headers that may hold secrets are
	// refused: they belong in SecretHeaders.
	ModelHeaders Lines `name:"model-header" env:"RECURGENT_MODEL_HEADER" value:"NAME=VALUE" default:"none" help:"header of every request to the model's server, as gateways want them; may be given several times (in the environment one a line); secret ones belong into --model-headers-file"`
	// ModelContext is the model's context window in tokens, prompt and reply together, 1024 to 100 million. 0 means
	// that it is learned from refusals.
	ModelContext int `name:"model-context" env:"RECURGENT_MODEL_CONTEXT" value:"TOKENS" default:"0: learned from refusals" help:"tokens that the model holds, prompt and reply together, as its server was started"`

	SecretHeaders Lines // like ModelHeaders, but never shown
}

// checkModel checks the options of the model's server. No error shows the value of a header.
func (o *Options) checkModel() error {
	for name, lines := range map[string]Lines{"model-header": o.ModelHeaders, "model-headers-file": o.SecretHeaders} {
		for _, line := range lines {
			header, value, ok := splitHeader(line)
			switch {
			case !ok:
				return refuse(name, "a header is NAME=VALUE")
			case !httpguts.ValidHeaderFieldName(header) || !httpguts.ValidHeaderFieldValue(value):
				return refuse(name, "%q is not a header that can be sent", header)
			case slices.Contains(ownHeaders, http.CanonicalHeaderKey(header)):
				return refuse(name, "%s is set by the daemon itself", header)
			case name == "model-header" && secretHeader(header):
				return refuse(name, "%s may hold a secret, and other users can read command lines; put it into a file for --model-headers-file", header)
			}
		}
	}
	if o.ModelContext != 0 && (o.ModelContext < 1024 || o.ModelContext > 100_000_000) {
		return refuse("model-context", "must be 0, or 1024 to 100000000, got %d", o.ModelContext)
	}
	return o.checkBaseURL()
}

// ownHeaders are the headers that the HTTP client sets itself.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Trailer", "Te",
	"Upgrade"}

// secretHeader guesses from the name whether a header may hold a secret.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	return name == "authorization" || name == "proxy-authorization" || name == "cookie" ||
		strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret")
}

// SecretInBaseURL reports whether a query parameter of the base URL may hold a secret, judging by its name.
func (o *Options) SecretInBaseURL() bool {
	u, err := url.Parse(o.OpenAIBaseURL)
	if err != nil {
		return false
	}
	for name := range u.Query() {
		if secretHeader(name) {
			return true
		}
	}
	return false
}

// splitHeader parses NAME=VALUE, or NAME: VALUE as in HTTP.
func splitHeader(line string) (name, value string, ok bool) {
	i := strings.IndexAny(line, "=:")
	if i < 1 {
		return "", "", false
	}
	return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), true
}

// modelHeader returns the configured headers of requests to the model's server.
func (o *Options) modelHeader() http.Header {
	h := http.Header{}
	for _, line := range slices.Concat(o.ModelHeaders, o.SecretHeaders) {
		if name, value, ok := splitHeader(line); ok {
			h.Add(name, value)
		}
	}
	return h
}

// checkBaseURL refuses a URL that cannot be a server's. A query is allowed, since gateways need one; its values are
// never shown.
func (o *Options) checkBaseURL() error {
	if o.OpenAIBaseURL == "" {
		return nil
	}
	u, err := url.Parse(o.OpenAIBaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return notURL("openai-base-url", o.OpenAIBaseURL, provider.MaskURL(o.OpenAIBaseURL))
	}
	if u.User != nil || u.Fragment != "" {
		return refuse("openai-base-url", "must have neither user nor fragment")
	}
	return nil
}

// ProviderOptions returns the options of the provider, without callbacks.
func (o *Options) ProviderOptions() provider.Options {
	po := provider.Options{Kind: o.Provider, OpenAI: provider.DefaultOpenAIOptions(), Recording: o.Recording,
		Embedded: demoRecording}
	po.OpenAI.Key, po.OpenAI.BaseURL, po.OpenAI.Timeout = o.OpenAIKey, o.OpenAIBaseURL, o.ProviderTimeout
	po.OpenAI.Model = o.Model
	for _, line := range o.SecretHeaders {
		if _, value, ok := splitHeader(line); ok {
			po.OpenAI.Secrets = append(po.OpenAI.Secrets, value)
		}
	}
	po.OpenAI.MaxCompletion, po.OpenAI.Context, po.OpenAI.Header = o.MaxCompletionTokens, o.ModelContext,
		o.modelHeader()
	return po
}
