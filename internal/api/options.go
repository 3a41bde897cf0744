package api

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures the interface. Start from DefaultOptions.
type Options struct {
	Namespaces Namespaces          // required
	Metrics    *telemetry.Metrics  // required
	Registry   prometheus.Gatherer // required: what /metrics shows
	Logger     zerolog.Logger

	// Auth finds who sends a request by its token. With nil, everyone on this machine may do everything, and requests must name
	// it as their host: localhost, a loopback address, or one of Hosts.
	Auth  access.Authenticator
	Hosts []string // more host names, without port: that of the listen address

	PublicURL string // where clients reach the daemon, without a slash at its end; "": where they say that they do

	Issuer string // URL of the issuer whose tokens Auth takes; "" for none

	// Origins are those whose pages may use the interface from a browser, as browsers send them, or AnyOrigin. With none, only the console may.
	Origins []string

	Cluster *cluster.Cluster // the replica that the daemon is; nil: it has its store to itself

	MetricsPublic bool // /metrics needs no token, and has no labels that name a role, a tool's method or a namespace

	OpenAPI []byte // served at /openapi.yaml
	MaxBody int64  // bytes of a request's body; of a refused one up to four times as much is read and thrown away

	// What one owner may have at once; a third more is there for others, see fair.Share.
	MaxCalls   int   // calls under way or waiting
	MaxStreams int   // event streams and downloads
	MaxBodies  int64 // bytes of bodies over 64 KiB being read, or with calls under way
	MaxReplies int64 // bytes of large replies being written; as many may wait for their turn

	Now     func() time.Time // the clock of rates
	Stall   time.Duration    // a client that does not take 64 KiB of a reply in that time is cut off
	Recheck time.Duration    // how often the token of an open stream is looked at again
	// a request whose session moves is sent to its owner of the moment so long: a replica that stops hands its sessions over within it
	Forward time.Duration
}

// DefaultOptions returns the defaults of everything that is not required.
func DefaultOptions() Options {
	return Options{Logger: zerolog.Nop(), MaxBody: 4 << 20, Now: time.Now, MaxCalls: 1024, MaxStreams: 256,
		MaxBodies: 64 << 20, MaxReplies: 64 << 20, Stall: 30 * time.Second, Recheck: 2 * time.Second,
		Forward: 3 * time.Second}
}

func (o Options) validate() error {
	switch {
	case o.Namespaces == nil || o.Metrics == nil || o.Registry == nil:
		return errors.New("api: Namespaces, Metrics and Registry are required")
	case o.MaxBody < 1:
		return errors.New("api: MaxBody must be at least 1")
	case o.MaxBodies < o.MaxBody+smallBody:
		return errors.New("api: MaxBodies must hold one body, and 65536 bytes more")
	case o.MaxReplies < largeReply || o.Stall <= 0 || o.Recheck <= 0 || o.Forward <= 0:
		return errors.New("api: MaxReplies must be at least 65536, and Stall, Recheck and Forward be set")
	case o.MaxCalls < 1 || o.MaxStreams < 1 || o.Now == nil:
		return errors.New("api: MaxCalls and MaxStreams must be at least 1, and Now be set")
	case len(o.OpenAPI) == 0:
		return errors.New("api: OpenAPI is required")
	}
	return nil
}
