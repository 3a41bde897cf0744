package app

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/connections"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// heavyFrom is the number of bytes from which work on a body waits for its turn: masking that much takes milliseconds
// of CPU time.
const heavyFrom = 64 << 10

// openFetch makes the client for fetches of programs. It adds credentials from the connections of the program's
// namespace.
func (a *App) openFetch(o Options, p *parts) error {
	fo := fetch.DefaultOptions()
	fo.MaxBody, fo.MaxFile, fo.OnResult = int(o.FetchMax), int64(o.FileMax), p.metrics.Fetch
	p.heavy = fair.NewHeavy[agent.Owner](int64(max(1, goruntime.GOMAXPROCS(0)/2)), heavyFrom)
	fo.Heavy = p.heavy
	t, err := fetch.NewTransport(fetch.TransportOptions{Allow: o.FetchAllow, Timeout: fo.Timeout})
	if err != nil {
		return err
	}
	a.onStop("the fetches", func(context.Context) error {
		t.Close()
		return nil
	})
	fo.Connector, p.transport = a.spaces, t
	p.fetch, err = fetch.New(t, fo)
	return err
}

// Connect is part of fetch.Connector. It returns nil if the namespace is closed; normally the program's call keeps it
// open.
func (n *namespaces) Connect(who fetch.Caller, method string, at *url.URL) fetch.Connection {
	s := n.get(who.Owner.Namespace)
	if s == nil {
		return nil
	}
	return s.secrets.Connect(who, method, at)
}

// Named is part of fetch.Connector.
func (n *namespaces) Named(who fetch.Caller, method, name string) (fetch.Connection, *url.URL, error) {
	s := n.get(who.Owner.Namespace)
	if s == nil {
		return nil, nil, &fetch.Refusal{Kind: fetch.KindConnection, Message: "the namespace is closed"}
	}
	return s.secrets.Named(who, method, name)
}

// openConnections opens the connections of a namespace. Without o.Env, no secret comes from the environment.
func openConnections(o Options, name agent.Namespace, t *fetch.Transport) (*connections.Service, error) {
	env := o.Env
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return connections.New(connections.Options{Namespace: name, Transport: t, KeyFile: o.SecretsKey(),
		OwnKey: o.SecretsKey() == filepath.Join(o.DataDir, store.SecretsKeyFile), SecretsDir: o.SecretsDir, Env: env})
}

// StoredConnections returns the stored connections, and a function that returns why the secret of a connection is not
// available, or "". The daemon may be running.
func StoredConnections(ctx context.Context,
	o Options) (all []agent.Connection, problem func(*agent.Connection) string, err error) {
	if o.Database() {
		all, err = postgres.StoredConnections(ctx, o.database())
	} else {
		all, err = disk.StoredConnections(o.DataDir)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := fetch.NewTransport(fetch.TransportOptions{})
	if err != nil {
		return nil, nil, err
	}
	secrets, err := openConnections(o, agent.DefaultNamespace, t)
	if err != nil {
		return nil, nil, err
	}
	return all, secrets.Problem, nil
}

// SecretsKey returns the path of the key file.
func (o *Options) SecretsKey() string {
	return cmp.Or(o.SecretsKeyFile, filepath.Join(o.DataDir, store.SecretsKeyFile))
}

// checkSecrets refuses secrets in the data directory: an export contains every file there except the default key file.
func (o *Options) checkSecrets() error {
	if file := o.SecretsKey(); within(o.DataDir, file) && file != filepath.Join(o.DataDir, store.SecretsKeyFile) {
		return refuse("secrets-key-file",
			"must not be in the data directory: exports would contain it; leave it out to use %s there, which "+
				"exports omit",
			store.SecretsKeyFile)
	}
	if o.SecretsDir == "" {
		return nil
	}
	if within(o.DataDir, o.SecretsDir) {
		return refuse("secrets-dir", "must not be in the data directory: exports would contain it")
	}
	if info, err := os.Stat(o.SecretsDir); err != nil {
		return refuse("secrets-dir", "%s", err)
	} else if !info.IsDir() {
		return refuse("secrets-dir", "%s is not a directory", o.SecretsDir)
	}
	return nil
}

// within reports whether the path is the directory or is below it. If it cannot decide, it reports true.
func within(dir, path string) bool {
	d, errDir := filepath.Abs(dir)
	p, errPath := filepath.Abs(path)
	if errDir != nil || errPath != nil {
		return true
	}
	rel, err := filepath.Rel(d, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// hostPattern reports whether the text has the form host, host:port or *.domain.
func hostPattern(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
		host = h
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.Zone() == ""
	}
	host = strings.TrimPrefix(host, "*.")
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	return true
}
