package cli

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// checkAccess reports who may use the daemon, whether tokens are sent without TLS, when certificates expire, and
// whether the issuer's keys can be fetched.
func checkAccess(ctx context.Context, o Options, now time.Time) finding {
	f := finding{Check: "access", Result: checkOK, Detail: "no tokens: everybody on this machine may do everything"}
	warn := func(detail, fix string) {
		f.Detail += "; " + detail
		if f.Result == checkOK {
			f.Result, f.Fix = checkWarn, fix
		}
	}
	switch {
	case o.AuthTokensFile != "" && o.OIDCIssuer != "":
		f.Detail = "tokens of " + o.AuthTokensFile + " and of " + o.OIDCIssuer
	case o.OIDCIssuer != "":
		f.Detail = "tokens of " + o.OIDCIssuer
	case o.AuthTokensFile != "":
		f.Detail = "tokens of " + o.AuthTokensFile
	}
	ends := func(what, file string, end time.Time) {
		at := end.UTC().Format(time.RFC3339)
		switch left := end.Sub(now); {
		case left <= 0:
			f.Result, f.Fix = checkFail, "put a new certificate in the place of "+file
			f.Detail += "; " + what + " ended at " + at
		case left < app.ExpiresSoon:
			warn(what+" ends at "+at, "put a new certificate in the place of "+file+
				"; the daemon reads it without a restart")
		default:
			f.Detail += "; " + what + " ends at " + at
		}
	}
	if end, ok := o.ClusterCertificateEnds(); ok {
		ends("the certificate among replicas", o.ClusterCert, end)
	}
	if end, ok := o.CertificateEnds(); ok {
		ends("the certificate", o.TLSCert, end)
	} else if !o.Local() {
		warn("they travel without TLS", "set --tls-cert and --tls-key, or put a proxy with TLS in front")
	}
	if o.OIDCIssuer == "" {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	keys, err := oidc.Probe(ctx, o.OIDCIssuer)
	switch {
	case err != nil:
		warn("the issuer's keys cannot be fetched: "+err.Error(),
			"check --oidc-issuer: OIDC discovery must answer at its /.well-known/openid-configuration")
	case o.OIDCNamespaceClaim == "":
		warn("its tokens may do nothing", "set --oidc-namespace-claim")
	default:
		f.Detail += "; the issuer has " + text.Plural(keys, "key")
	}
	return f
}
