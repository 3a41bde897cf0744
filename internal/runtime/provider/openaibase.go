package provider

import (
	"net/url"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// chatPath is what requests add to the base URL.
const chatPath = "/chat/completions"

// A base is where a model's server is, as its base URL says it.
type base struct {
	url   string // without query and trailing slash
	query string // goes with every request
	azure bool   // the key goes into the header api-key
}

// parseBase reads a base URL. One that ends as requests do is taken for what stands before that.
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

// WholeURL reports whether the base URL ends as requests do, which is more than it should have.
func WholeURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), chatPath)
}

// MaskURL returns the URL as it may be shown: without a password, and without the values of its query.
func MaskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "[URL]"
	}
	if u.RawQuery != "" {
		var names []string
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			name, _, named := strings.Cut(pair, "=")
			if !named {
				name = "***" // it may be the value
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

// versioned reports whether the base URL names a version, or a deployment of Azure, which has none.
func versioned(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (versionPath().MatchString(u.Path) || strings.Contains(u.Path, "/openai"))
}

// withVersion is the base URL with the version that most servers want.
func withVersion(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), chatPath)+"/v1", ""
	return u.String()
}

// leastSecret is how long a value is at least that is taken out of texts: shorter ones stand in words.
const leastSecret = 6

// secretsOf lists what must not be disclosed.
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
		if _, credentials, ok := strings.Cut(s, " "); ok { // after the scheme
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
