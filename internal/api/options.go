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

// Options configures the interface. Start from DefaultOptions; New reports invalid values.
type Options struct {
	Namespaces Namespaces          // required
	Metrics    *telemetry.Metrics  // required
	Registry   prometheus.Gatherer // required: the source of /metrics
	Logger     zerolog.Logger

	// Auth authenticates access tokens. With nil, everyone on this machine has all rights, and requests must name this
	// machine as their host: localhost, a loopback address, or one of Hosts.
	Auth  access.Authenticator
	Hosts []string // more host names, without port, such as that of the listen address

	PublicURL string // URL of the daemon for clients, without a trailing slash; "": taken from the request

	Issuer string // URL of the OAuth issuer whose tokens Auth accepts; "" if there is none

	// Origins are the origins whose pages may use the interface from a browser, in the form of the Origin header, or
	// AnyOrigin. If it is empty, only the console may.
	Origins []string

	Cluster *cluster.Cluster // this daemon's replica; nil: the daemon has its store to itself

	MetricsPublic bool // /metrics needs no token, and has no labels that name a role, a method or a namespace

	OpenAPI []byte // served at /openapi.yaml
	MaxBody int64  // bytes of a request's body; of a refused one, up to four times as many are read and discarded

	// Limits per owner. A third more is reserved for other owners (fair.Share).
	MaxCalls   int   // calls running or waiting
	MaxStreams int   // event streams and downloads
	MaxBodies  int64 // bytes of bodies over 64 KiB that are being read or belong to running calls
	MaxReplies int64 // bytes of large replies being written; as many may wait

	Now     func() time.Time // clock of the rate limits
	Stall   time.Duration    // a client that does not read 64 KiB of a reply within this time is disconnected
	Recheck time.Duration    // interval at which the token of an open stream is checked again
	// how long a request is forwarded again while its session moves; a replica that stops hands its sessions over
	// within it
	Forward time.Duration
}

// DefaultOptions returns the defaults of all optional fields.
func DefaultOptions() Options {
	return Options{Logger: zerolog.Nop(), MaxBody: 4 << 20, Now: time.Now, MaxCalls: 1024, MaxStreams: 256,
		MaxBodies: 64 << 20, MaxReplies: 64 << 20, Stall: 30 * time.Second, Recheck: 2 * time.Second,
		Forward: 3 * time.Second}
}

// validate returns an error that names the first invalid field.
func (o Options) validate() error {
	switch {
	case o.Namespaces == nil || o.Metrics == nil || o.Registry == nil:
		return errors.New("api: Namespaces, Metrics and Registry are required")
	case o.MaxBody < 1:
		return errors.New("api: MaxBody must be at least 1")
	case o.MaxBodies < o.MaxBody+smallBody:
		return errors.New("api: MaxBodies must be at least MaxBody and 65536 bytes more")
	case o.MaxReplies < largeReply || o.Stall <= 0 || o.Recheck <= 0 || o.Forward <= 0:
		return errors.New("api: MaxReplies must be at least 65536, and Stall, Recheck and Forward be set")
	case o.MaxCalls < 1 || o.MaxStreams < 1 || o.Now == nil:
		return errors.New("api: MaxCalls and MaxStreams must be at least 1, and Now be set")
	case len(o.OpenAPI) == 0:
		return errors.New("api: OpenAPI is required")
	}
	return nil
}
