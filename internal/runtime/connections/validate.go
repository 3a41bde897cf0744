package connections

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// Bounds of a connection.
const (
	minSecret      = 8       // bytes; shorter echoes would look like ordinary text
	maxSecret      = 8 << 10 // bytes
	maxDescription = 500     // characters
	maxList        = 32
	maxText        = 500
)

var (
	nameForm = lazy.Regexp(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	envForm  = lazy.Regexp(`^RECURGENT_SECRET_[A-Z0-9_]{1,100}$`)
	fileForm = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
)

// CheckName returns an *agent.InputError if the name is not a valid connection name.
func CheckName(name string) error {
	if nameForm().MatchString(name) {
		return nil
	}
	return invalid("", "a connection's name has 1 to 63 characters of a-z, 0-9, - and _, and begins with a letter or a digit", "")
}

// invalid returns an error whose detail begins with the name of the member.
func invalid(pointer, detail, hint string) *agent.InputError {
	return &agent.InputError{Code: "validation_failed", Pointer: pointer,
		Detail: strings.TrimSpace(strings.TrimPrefix(pointer, "/") + " " + detail), Hint: hint}
}

// Normalise checks a connection except its secret, and normalizes hosts to lower case and methods to upper case, in
// place. The error is an *agent.InputError.
func Normalise(c *agent.Connection) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if len([]rune(c.Description)) > maxDescription || hasControl(c.Description) {
		return invalid("/description", fmt.Sprintf("must have at most %d characters, on one line", maxDescription), "")
	}
	for _, check := range []func(*agent.Connection) *agent.InputError{checkHosts, checkMethods, checkRoles, checkAuth} {
		if err := check(c); err != nil {
			return err
		}
	}
	if h := c.IdempotencyHeader; h != "" && !settable(h) {
		return invalid("/idempotency_header", "is not a header that a request can set", "such as Idempotency-Key")
	}
	return nil
}

func checkHosts(c *agent.Connection) *agent.InputError {
	if len(c.Hosts) == 0 || len(c.Hosts) > maxList {
		return invalid("/hosts", fmt.Sprintf("must name 1 to %d hosts", maxList), "such as api.example.org")
	}
	for i, h := range c.Hosts {
		at := fmt.Sprintf("/hosts/%d", i)
		p, err := fetch.ParseHost(h)
		if err != nil {
			return invalid(at, "is not host, host:port or *.domain", "without https:// and without a path")
		}
		// A secret for *.com would be sent to strangers.
		if d := p.Domain(); d != "" && !strings.Contains(d, ".") {
			return invalid(at, "names a whole top-level domain", "name a domain below it, such as *.example.org")
		}
		c.Hosts[i] = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(h)), ".")
	}
	return nil
}

func checkMethods(c *agent.Connection) *agent.InputError {
	known := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete}
	if len(c.Methods) == 0 {
		return invalid("/methods", "must name at least one method", strings.Join(known, ", "))
	}
	for i, m := range c.Methods {
		c.Methods[i] = strings.ToUpper(m)
		if !slices.Contains(known, c.Methods[i]) || slices.Contains(c.Methods[:i], c.Methods[i]) {
			return invalid(fmt.Sprintf("/methods/%d", i), "cannot be granted, or appears twice",
				strings.Join(known, ", "))
		}
	}
	return nil
}

func checkRoles(c *agent.Connection) *agent.InputError {
	if len(c.Roles) == 0 || len(c.Roles) > maxList {
		return invalid("/roles", fmt.Sprintf("must name 1 to %d roles", maxList), `["*"] grants it to every role`)
	}
	for i, r := range c.Roles {
		role, err := agent.Name("role", r)
		if err != nil {
			return invalid(fmt.Sprintf("/roles/%d", i), err.Error(), "")
		}
		c.Roles[i] = role
	}
	return nil
}

// checkAuth checks that exactly the members required by the type of authentication are set; scopes are optional for
// oauth2.
func checkAuth(c *agent.Connection) *agent.InputError {
	a := &c.Auth
	given := map[string]bool{"name": a.Name != "", "username": a.Username != "", "token_url": a.TokenURL != "",
		"client_id": a.ClientID != "", "scopes": len(a.Scopes) > 0}
	needs, ok := map[string][]string{agent.AuthBearer: {}, agent.AuthHeader: {"name"}, agent.AuthQuery: {"name"},
		agent.AuthBasic: {"username"}, agent.AuthURL: {},
		agent.AuthOAuth2: {"token_url", "client_id"}}[a.Type]
	if !ok {
		return invalid("/auth/type", "must be bearer, header, query, basic, oauth2 or url", "")
	}
	for _, name := range []string{"name", "username", "token_url", "client_id", "scopes"} {
		switch needed := slices.Contains(needs, name); {
		case needed && !given[name]:
			return invalid("/auth/"+name, "is required where the type is "+a.Type, "")
		case given[name] && !needed && (a.Type != agent.AuthOAuth2 || name != "scopes"):
			return invalid("/auth/"+name, "has no meaning where the type is "+a.Type, "")
		}
	}
	for name, v := range map[string]string{"name": a.Name, "username": a.Username, "client_id": a.ClientID,
		"scopes": strings.Join(a.Scopes, " ")} {
		if len(v) > maxText || hasControl(v) {
			return invalid("/auth/"+name, fmt.Sprintf("must have at most %d bytes and no control characters", maxText),
				"")
		}
	}
	switch {
	case a.Type == agent.AuthHeader && !settable(a.Name):
		return invalid("/auth/name", "is not a header that a request can set", "such as X-Api-Key")
	case a.Type == agent.AuthBasic && strings.Contains(a.Username, ":"):
		return invalid("/auth/username", "must not contain a colon", "")
	case a.Type == agent.AuthOAuth2:
		return checkTokenURL(a.TokenURL)
	}
	return nil
}

func checkTokenURL(text string) *agent.InputError {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" ||
		len(text) > maxText {
		return invalid("/auth/token_url", "must be an https address without a user",
			"such as https://id.example.org/oauth/token")
	}
	return nil
}

// settable reports whether a credential may be sent in the header.
func settable(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Keep-Alive",
		"Expect", "Accept-Encoding", "User-Agent", "Accept", "Content-Type":
		return false
	}
	return len(name) <= 100 && httpguts.ValidHeaderFieldName(name) &&
		!strings.HasPrefix(strings.ToLower(name), "proxy-")
}

// CheckSource returns an *agent.InputError if env or file is not a valid location of a secret. At most one of them is
// set.
func CheckSource(env, file string) error {
	switch {
	case env != "" && !envForm().MatchString(env):
		return invalid("/auth/secret/env", "must name an environment variable RECURGENT_SECRET_...", "")
	case file != "" && !fileForm().MatchString(file):
		return invalid("/auth/secret/file", "must name a file in --secrets-dir, without a path", "")
	}
	return nil
}

// CheckSecret returns an *agent.InputError if the secret is invalid. The error does not contain it.
func CheckSecret(secret string) error {
	if why := unfit(secret); why != "" {
		return invalid("/auth/secret", why, "")
	}
	return nil
}

// unfit returns the reason why a secret is invalid, or "".
func unfit(secret string) string {
	switch {
	case len(secret) < minSecret:
		return fmt.Sprintf("has fewer than %d characters, too few to recognize it in an answer", minSecret)
	case len(secret) > maxSecret:
		return fmt.Sprintf("has more than %d bytes", maxSecret)
	case !httpguts.ValidHeaderFieldValue(secret) || hasControl(secret) || strings.TrimSpace(secret) != secret:
		return "has control characters, or white space at an end"
	}
	return ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
