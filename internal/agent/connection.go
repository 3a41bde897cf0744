package agent

import (
	"net/url"
	"slices"
	"time"
)

// A Connection lets programs use an external API without holding its secret: the daemon adds the credential to matching
// requests. A stored secret is sealed; this type never holds one in clear.
type Connection struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Hosts       []string `json:"hosts"`   // host, host:port or *.domain
	Methods     []string `json:"methods"` // HTTP methods, upper case
	// Roles are those whose programs may use it; "*" means every role.
	Roles             []string       `json:"roles"`
	Auth              ConnectionAuth `json:"auth"`
	IdempotencyHeader string         `json:"idempotency_header,omitempty"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
	Revision          int64          `json:"revision"`
}

// Values of ConnectionAuth.Type.
const (
	AuthBearer = "bearer" // Authorization: Bearer SECRET
	AuthHeader = "header" // the header Name holds the secret
	AuthQuery  = "query"  // the query parameter Name holds the secret
	AuthBasic  = "basic"  // Authorization: Basic with Username and the secret
	AuthOAuth2 = "oauth2" // client credentials: the secret is exchanged for access tokens at TokenURL
	// AuthURL means that the secret is the whole address. Programs write ConnectionScheme and the connection's name
	// instead.
	AuthURL = "url"
)

// ConnectionScheme is the scheme of the address connection:NAME, by which a program refers to a connection of type
// AuthURL.
const ConnectionScheme = "connection"

// ConnectionIn returns the name in an address connection:NAME; ok is false for any other address.
func ConnectionIn(u *url.URL) (name string, ok bool) {
	if u.Scheme != ConnectionScheme || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	return u.Opaque, u.Opaque != ""
}

// ConnectionAuth describes how a connection authenticates. At most one of Sealed, Env and File is set. If none is, no
// secret is known.
type ConnectionAuth struct {
	Type     string   `json:"type"`
	Name     string   `json:"name,omitempty"`      // header, query
	Username string   `json:"username,omitempty"`  // basic
	TokenURL string   `json:"token_url,omitempty"` // oauth2
	ClientID string   `json:"client_id,omitempty"` // oauth2
	Scopes   []string `json:"scopes,omitempty"`    // oauth2

	Sealed []byte `json:"sealed,omitempty"` // encrypted to the daemon's identity
	Env    string `json:"env,omitempty"`    // the environment variable that holds the secret
	File   string `json:"file,omitempty"`   // the file in the secrets directory that holds it
}

// HasSecret reports whether the secret, or its location, is known.
func (a *ConnectionAuth) HasSecret() bool { return len(a.Sealed) > 0 || a.Env != "" || a.File != "" }

// WithoutSecret returns the connection with no secret.
func (c Connection) WithoutSecret() Connection {
	c.Auth.Sealed, c.Auth.Env, c.Auth.File = nil, "", ""
	return c
}

// everyRole in Connection.Roles stands for every role.
const everyRole = "*"

// Grants reports whether programs of the role may use the connection.
func (c *Connection) Grants(role string) bool {
	return slices.Contains(c.Roles, everyRole) || slices.ContainsFunc(c.Roles,
		func(r string) bool { return r == role || NormalForm(r) == NormalForm(role) })
}

// Exceeds returns the first member in which c reaches further than was or authenticates differently, which requires the
// secret to be given again. It returns "" if c only narrows or describes.
func (c *Connection) Exceeds(was *Connection) string {
	a, b := c.WithoutSecret().Auth, was.WithoutSecret().Auth
	switch {
	case !sameMembers(c.Hosts, was.Hosts):
		return "hosts"
	case a.TokenURL != b.TokenURL:
		return "auth.token_url"
	case a.Type != b.Type || a.Name != b.Name || a.Username != b.Username || a.ClientID != b.ClientID ||
		!sameMembers(a.Scopes, b.Scopes):
		return "auth"
	case !within(c.Methods, was.Methods):
		return "methods"
	case !slices.Contains(was.Roles, everyRole) && !within(c.Roles, was.Roles):
		return "roles"
	}
	return ""
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

func sameMembers(a, b []string) bool { return within(a, b) && within(b, a) }
