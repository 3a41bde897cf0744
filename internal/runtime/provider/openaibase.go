package provider

import (
	"net/url"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

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
