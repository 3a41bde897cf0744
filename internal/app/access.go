package app

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/access/oidc"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// AccessOptions configure who may use the daemon, and TLS. Without a token file and an issuer, everyone on this machine
// has all rights.
type AccessOptions struct {
	// AuthTokensFile contains access tokens; see access.ParseTokens. The daemon rereads it when it changes.
	AuthTokensFile string `name:"auth-tokens-file" env:"RECURGENT_AUTH_TOKENS_FILE" value:"FILE" default:"none: loopback only" help:"access tokens, a name, a token (or sha256:HEX of it) and what it may do a line; read again when it changes; these or --oidc-issuer are required to listen on anything but loopback"`
	// OIDCIssuer is the URL of an OpenID Connect issuer. Its tokens (JWTs) are accepted in addition to those of the
	// file.
	OIDCIssuer string `name:"oidc-issuer" env:"RECURGENT_OIDC_ISSUER" value:"URL" default:"none" help:"OpenID Connect issuer whose tokens (JWTs) are taken, beside those of the token file; https, or http on this machine"`
	// OIDCAudience must be among the audiences of a token. It is required with OIDCIssuer.
	OIDCAudience string `name:"oidc-audience" env:"RECURGENT_OIDC_AUDIENCE" value:"TEXT" default:"none" help:"what the issuer calls this daemon: a token must name it in aud; required with --oidc-issuer"`
	// OIDCNameClaim, OIDCNamespaceClaim and OIDCScopeClaim name the claims with the owner, namespace and scopes of a
	// token.
	OIDCNameClaim      string `name:"oidc-name-claim" env:"RECURGENT_OIDC_NAME_CLAIM" value:"CLAIM" help:"claim that names the owner of a token"`
	OIDCNamespaceClaim string `name:"oidc-namespace-claim" env:"RECURGENT_OIDC_NAMESPACE_CLAIM" value:"CLAIM" default:"none: tokens of the issuer may do nothing" help:"claim that names the namespace in which a token acts; a token without it may do nothing"`
	OIDCScopeClaim     string `name:"oidc-scope-claim" env:"RECURGENT_OIDC_SCOPE_CLAIM" value:"CLAIM" help:"claim that lists the scopes: a text with spaces between them, or an array; others than read, call, operate and admin are ignored"`
	// OIDCRate, such as 50/s, and OIDCConcurrency limit the requests and the concurrent calls of each owner of the
	// issuer's tokens. "" and 0 mean no limit.
	OIDCRate        string `name:"oidc-rate" env:"RECURGENT_OIDC_RATE" value:"RATE" default:"none" help:"requests that each owner of the issuer's tokens may send, such as 50/s, as rate= in the token file"`
	OIDCConcurrency int    `name:"oidc-concurrency" env:"RECURGENT_OIDC_CONCURRENCY" value:"N" default:"none" help:"calls that each owner of the issuer's tokens may have under way at once, as concurrency= in the token file"`
	// TLSCert and TLSKey are PEM files. The daemon rereads them when they change.
	TLSCert string `name:"tls-cert" env:"RECURGENT_TLS_CERT" value:"FILE" default:"none: no TLS" help:"certificate chain (PEM) to speak HTTPS with; read again when it changes"`
	TLSKey  string `name:"tls-key" env:"RECURGENT_TLS_KEY" value:"FILE" default:"none" help:"private key (PEM) of --tls-cert"`

	oidcRate    float64              // parsed OIDCRate
	tokens      *file[access.Tokens] // of AuthTokensFile; set by the first Resolve only, since a pipe can be read once
	certificate *file[certificate]   // of TLSCert and TLSKey; set like tokens
}

// Guarded reports whether requests need an access token.
func (o *Options) Guarded() bool {
	return o.Auth != nil || o.AuthTokensFile != "" || o.OIDCIssuer != ""
}

// checkAccess checks the options and reads the files, once.
func (o *Options) checkAccess() (err error) {
	if err := o.checkIssuer(); err != nil {
		return err
	}
	switch {
	case o.TLSCert == "" && o.TLSKey != "":
		return refuse("tls-cert", "is required with --tls-key")
	case o.TLSCert != "" && o.TLSKey == "":
		return refuse("tls-key", "is required with --tls-cert")
	}
	if o.AuthTokensFile != "" && o.tokens == nil {
		if o.tokens, err = openFile(readTokens, o.AuthTokensFile); err != nil {
			return refuse("auth-tokens-file", "%s", err)
		}
	}
	if o.TLSCert != "" && o.certificate == nil {
		if o.certificate, err = openFile(readCertificate, o.TLSCert, o.TLSKey); err != nil {
			return refuse("tls-cert", "%s", err)
		}
	}
	return nil
}

// checkIssuer checks the options of the issuer.
func (o *Options) checkIssuer() (err error) {
	if o.OIDCIssuer == "" {
		for name, given := range map[string]bool{"oidc-audience": o.OIDCAudience != "",
			"oidc-namespace-claim": o.OIDCNamespaceClaim != "", "oidc-rate": o.OIDCRate != "",
			"oidc-concurrency": o.OIDCConcurrency != 0} {
			if given {
				return refuse(name, "needs --oidc-issuer, which is not set")
			}
		}
		return nil
	}
	if o.OIDCAudience == "" {
		return refuse("oidc-audience",
			"is required with --oidc-issuer: without it, tokens for other services would be accepted")
	}
	if o.OIDCConcurrency < 0 || o.OIDCConcurrency > access.MaxConcurrency {
		return refuse("oidc-concurrency", "must be 1 to 1000000, or 0 for no limit, got %d", o.OIDCConcurrency)
	}
	if o.OIDCRate != "" {
		if o.oidcRate, err = access.ParseRate(o.OIDCRate); err != nil {
			return refuse("oidc-rate", "%q is not %s", o.OIDCRate, err)
		}
	}
	if err := oidc.CheckURL(o.OIDCIssuer); err != nil {
		return refuse("oidc-issuer", "%s", err)
	}
	return nil
}

// readTokens parses a token file, for openFile.
func readTokens(contents ...[]byte) (t access.Tokens, err error) {
	tokens, err := access.ParseTokens(contents[0])
	if err != nil {
		return t, err
	}
	return *tokens, nil
}

// tokenFile authenticates with the current contents of the token file.
type tokenFile struct {
	now *atomic.Pointer[access.Tokens]
}

// Authenticate implements access.Authenticator.
func (f tokenFile) Authenticate(ctx context.Context, bearer string) (access.Principal, error) {
	return f.now.Load().Authenticate(ctx, bearer)
}

// openAccess sets up authentication and TLS, and watches their files. It sets o.Auth unless the caller has set it.
func (a *App) openAccess(o *Options, m *telemetry.Metrics) error {
	a.scheme = "http"
	a.files = &watched{log: a.log}
	var from access.Any
	if o.tokens != nil {
		from = append(from, tokenFile{&o.tokens.now})
		watch(a.files, o.tokens, func(err error) { m.Reloaded(telemetry.ReloadTokens, err) })
	}
	if o.OIDCIssuer != "" {
		issuer, err := oidc.New(oidc.Options{Issuer: o.OIDCIssuer, Audience: o.OIDCAudience, NameClaim: o.OIDCNameClaim,
			NamespaceClaim: o.OIDCNamespaceClaim,
			ScopeClaim:     o.OIDCScopeClaim, Rate: o.oidcRate, Concurrency: o.OIDCConcurrency, Logger: a.log,
			Fetched: m.IssuerKeys, Now: o.Now})
		if err != nil {
			return err
		}
		a.onStop("the issuer's keys", func(context.Context) error { issuer.Close(); return nil })
		from = append(from, issuer)
		if o.OIDCNamespaceClaim == "" {
			a.log.Warn().Msg("the issuer's tokens may do nothing: --oidc-namespace-claim does not say which claim names a namespace")
		}
	}
	if o.Auth == nil && len(from) > 0 {
		o.Auth = from
	}
	if o.certificate != nil {
		a.scheme = "https"
		a.useTLS(o, m)
	} else if o.Guarded() && !o.Local() {
		a.log.Warn().Str("listen",
			o.Listen).Msg("tokens travel without TLS: use --tls-cert and --tls-key, or a proxy with TLS in front")
	}
	a.watchCluster(o, m)
	a.reportEnds(o, m)
	a.onStop("watching files", a.files.start())
	return nil
}

// serve answers requests until the server is shut down. It always returns an error.
func (a *App) serve() error {
	if a.server.TLSConfig != nil {
		return a.server.ServeTLS(a.listener, "", "")
	}
	return a.server.Serve(a.listener)
}

// Reload rereads the token file and the certificates at once, without the delay that protects against half-written
// files. If a file is invalid, its previous contents stay in use and the error is logged.
func (a *App) Reload() { a.files.look(true) }

// Reloads reports whether any file can be reloaded.
func (a *App) Reloads() bool { return len(a.files.list) > 0 }

// checkListen refuses to serve other machines without access tokens.
func (o *Options) checkListen() error {
	if o.DataDir == "" {
		return refuse("data-dir", "must not be empty")
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return refuse("listen", "%q is not HOST:PORT, such as 127.0.0.1:8420", o.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return refuse("listen", "%q is not a port number from 0 to 65535", port)
	}
	if !o.Guarded() && !loopback(host) {
		return refuse("listen", "%s can be reached from other machines: set --auth-tokens-file or --oidc-issuer, "+
			"or listen on 127.0.0.1:%s", o.Listen, port)
	}
	for _, h := range o.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/ \t") {
			return refuse("allowed-hosts", "%q is not a host name", h)
		}
	}
	if err := o.checkPublicURL(); err != nil {
		return err
	}
	return o.checkOrigins()
}

// checkOrigins refuses to allow all origins without access tokens: any site that a user visits could control the
// daemon.
func (o *Options) checkOrigins() error {
	for _, origin := range o.CORSOrigins {
		if origin != api.AnyOrigin {
			if err := api.CheckOrigin(origin); err != nil {
				return refuse("cors-origins",
					"%q is not an origin as browsers send it, such as https://app.example.com or http://localhost:5173: %s", origin, err)
			}
		} else if !o.Guarded() || len(o.CORSOrigins) > 1 {
			return refuse("cors-origins",
				"* admits every web page: it needs --auth-tokens-file or --oidc-issuer, and no other origin with it")
		}
	}
	return nil
}

// Local reports whether the daemon listens on a loopback address only.
func (o *Options) Local() bool {
	host, _, err := net.SplitHostPort(o.Listen)
	return err == nil && loopback(host)
}

// loopback reports whether the host is a loopback address or localhost. Other names may resolve to anything.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
