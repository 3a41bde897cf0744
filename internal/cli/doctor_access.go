package cli

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// checkAccess reports who may use the daemon, whether tokens travel in the clear, when the certificate ends, and whether the
// issuer hands out its keys.
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
	if ends, ok := o.CertificateEnds(); ok {
		at := ends.UTC().Format(time.RFC3339)
		switch left := ends.Sub(now); {
		case left <= 0:
			f.Result, f.Fix = checkFail, "put a new certificate in the place of "+o.TLSCert
			f.Detail += "; the certificate ended at " + at
		case left < app.ExpiresSoon:
			warn("the certificate ends at "+at, "put a new certificate in the place of "+o.TLSCert+"; the daemon reads it without a restart")
		default:
			f.Detail += "; the certificate ends at " + at
		}
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
		warn("the issuer's keys cannot be fetched: "+err.Error(), "check --oidc-issuer: OIDC discovery must answer at its /.well-known/openid-configuration")
	case o.OIDCNamespaceClaim == "":
		warn("its tokens may do nothing", "set --oidc-namespace-claim")
	default:
		f.Detail += "; the issuer has " + text.Plural(keys, "key")
	}
	return f
}
