package app

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// ClusterOptions configure how replicas, daemons that share a store, reach each other.
type ClusterOptions struct {
	// Advertise is the HOST:PORT at which other replicas reach this one. Port 0 takes the port that was listened on.
	Advertise string `name:"advertise" env:"RECURGENT_ADVERTISE" value:"HOST:PORT" default:"none: others forward nothing here" help:"address at which the other replicas reach this one; requests for its sessions are forwarded there"`
	// ClusterListen is the address that listens for other replicas; "" means that of Advertise.
	ClusterListen string `name:"cluster-listen" env:"RECURGENT_CLUSTER_LISTEN" value:"HOST:PORT" default:"that of --advertise" help:"address on which requests of the other replicas are taken, where it is another than they use"`
	// ClusterCA, ClusterCert and ClusterKey are PEM files. The daemon rereads them when they change.
	ClusterCA   string `name:"cluster-ca" env:"RECURGENT_CLUSTER_CA" value:"FILE" default:"none" help:"authority (PEM) of the replicas' certificates; required with --advertise"`
	ClusterCert string `name:"cluster-cert" env:"RECURGENT_CLUSTER_CERT" value:"FILE" default:"none" help:"certificate (PEM) of this replica, for servers and clients. Those that have a name in common with it, and are of the same authority, may do everything; read again when it changes"`
	ClusterKey  string `name:"cluster-key" env:"RECURGENT_CLUSTER_KEY" value:"FILE" default:"none" help:"private key (PEM) of --cluster-cert"`

	identity    *file[certificate] // set by the first Resolve only, since a pipe can be read once
	authorities *file[*x509.CertPool]
}

// checkCluster checks the options and reads the files, once.
func (o *Options) checkCluster() (err error) {
	for name, value := range map[string]string{"cluster-listen": o.ClusterListen, "cluster-ca": o.ClusterCA,
		"cluster-cert": o.ClusterCert, "cluster-key": o.ClusterKey} {
		if o.Advertise == "" && value != "" {
			return refuse(name, "needs --advertise, which is not set")
		}
		if o.Advertise != "" && value == "" && name != "cluster-listen" {
			return refuse(name, "is required with --advertise")
		}
	}
	if o.Advertise == "" {
		return nil
	}
	for name, value := range map[string]string{"advertise": o.Advertise, "cluster-listen": o.clusterListen()} {
		if host, port, err := net.SplitHostPort(value); err != nil || port == "" || name == "advertise" && host == "" {
			return refuse(name, "%q is not HOST:PORT", value)
		}
	}
	if o.identity != nil {
		return nil
	}
	if o.identity, err = openFile(readIdentity, o.ClusterCert, o.ClusterKey); err != nil {
		return refuse("cluster-cert", "%s", err)
	}
	if o.authorities, err = openFile(readAuthorities, o.ClusterCA); err != nil {
		return refuse("cluster-ca", "%s", err)
	}
	return nil
}

func (o *Options) clusterListen() string {
	if o.ClusterListen != "" {
		return o.ClusterListen
	}
	return o.Advertise
}

// readIdentity parses a replica's certificate and key. The certificate must have a name, since replicas of a cluster
// recognize each other by a common one.
func readIdentity(contents ...[]byte) (certificate, error) {
	c, err := readCertificate(contents...)
	if err == nil && len(cluster.Names(c.Leaf)) == 0 {
		err = errors.New("has no name for the replicas to share: a DNS name, URI or common name")
	}
	return c, err
}

// readAuthorities parses a file of CA certificates, for openFile.
func readAuthorities(contents ...[]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("holds no certificate (PEM)")
	}
	return pool, nil
}

// openCluster joins the cluster if the store is shared, and makes the server for requests of other replicas.
func (a *App) openCluster(ctx context.Context, o Options, p *parts) error {
	if p.shared == nil {
		if o.Advertise != "" {
			return refuse("advertise", "needs --store postgres://...: a data directory has one daemon")
		}
		return nil
	}
	co := cluster.DefaultOptions()
	co.Store, co.Version, co.Logger = p.shared, p.build.Version, a.log
	co.Calls = func() int64 { running, waiting := a.spaces.calls(); return int64(running + waiting) }
	co.TTL, co.Dial = cmp.Or(o.ReplicaTTL, co.TTL), cmp.Or(o.ReplicaDial, co.Dial)
	if o.Advertise != "" {
		l, err := net.Listen("tcp", o.clusterListen())
		if err != nil {
			return fmt.Errorf("cannot listen on %s for other replicas: %w; set another --cluster-listen",
				o.clusterListen(), cause(err))
		}
		a.onStop("the replicas' listener", func(context.Context) error { return closeListener(l) })
		a.peers = &peerServer{listener: l}
		co.Address = advertised(o.Advertise, l.Addr())
		co.TLS = &cluster.TLS{Certificate: o.identity.now.Load,
			Authorities: func() *x509.CertPool { return *o.authorities.now.Load() }}
	} else {
		a.log.Warn().Msg("no --advertise: other replicas cannot forward requests for the sessions of this one")
	}
	c, err := cluster.Join(ctx, co)
	if err != nil {
		return err
	}
	p.cluster = c
	a.onStop("the replica", c.Leave)
	if a.peers != nil {
		a.makePeerServer(c)
	}
	return nil
}

// advertised returns the address, with port 0 replaced by the port of the listener.
func advertised(address string, taken net.Addr) string {
	host, port, _ := net.SplitHostPort(address)
	if port != "0" {
		return address
	}
	_, port, _ = net.SplitHostPort(taken.String())
	return net.JoinHostPort(host, port)
}

// closeListener closes l. A server may have closed it before.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) { // the server closes its listener itself
		return err
	}
	return nil
}

// A peerServer answers requests that other replicas forward.
type peerServer struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when the server has ended; nil until Start
}

// makePeerServer makes the server. It passes requests to the handler of the main server, which does not exist yet.
func (a *App) makePeerServer(c *cluster.Cluster) {
	base, hangUp := context.WithCancelCause(context.Background())
	s := a.peers
	s.server = c.Listen(base,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.server.Handler.ServeHTTP(w, r) }))
	s.server.MaxHeaderBytes = MaxHeaderBytes + 8<<10 // a client's headers, and those that the replica adds
	s.server.ErrorLog = a.server.ErrorLog
	a.onStop("the replicas' server", func(ctx context.Context) error {
		hangUp(errStopping) // ends streams
		return shutDown(ctx, s.server, s.served)
	})
}

// servePeers starts to serve other replicas. It does nothing without --advertise.
func (a *App) servePeers() {
	s := a.peers
	if s == nil {
		return
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.server.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			select {
			case a.failed <- fmt.Errorf("the server for other replicas ended: %w", err):
			default: // the main server has failed, too
			}
		}
	}()
}

// watchCluster watches the certificate and the authority of the replicas.
func (a *App) watchCluster(o *Options, m *telemetry.Metrics) {
	if o.identity == nil {
		return
	}
	a.watchCertificate(o, o.identity, m)
	watch(a.files, o.authorities, func(err error) { m.Reloaded(telemetry.ReloadCertificate, err) })
}

// owners returns the ownership of the namespace's sessions by replicas, or nil without a cluster.
func (p *parts) owners(name agent.Namespace, held store.Owners) env.Owners {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.Sessions(name, held)
}
