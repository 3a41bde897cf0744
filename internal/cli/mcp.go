package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/mcp"
)

func mcpCommand(sh Shell) *cobra.Command {
	var own bool
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the methods to an agent, over MCP on stdin and stdout",
		Long: `Serve the methods to an agent over the Model Context Protocol, on standard input and output: agents start
this command themselves. It passes everything on to the daemon at --url. Without --url and RECURGENT_URL it asks
for a daemon at the default address. Where none answers, or with --embedded, it starts one of its own, with the
settings of serve, which ends with the agent. The log is on stderr.

An agent that speaks streamable HTTP needs no command: it connects to the daemon's /mcp.

Exit status: 0 when the agent closed standard input, 1 when it failed, 2 for a wrong command line or setting,
3 when no daemon answers at --url.`,
		Example: `  recurgentd mcp
  recurgentd mcp --url http://127.0.0.1:8420
  OPENAI_API_KEY=sk-... recurgentd mcp --embedded --data-dir ~/tools`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			given, _ := sh.Env("RECURGENT_URL")
			named := cmd.Flags().Changed("url") || given != "" || remote.URL != defaultOptions().URL
			if !own && (named || daemonAt(ctx, remote.URL)) {
				c := client.New(remote.URL, remote.Token, remote.roots).In(remote.Namespace)
				if err := c.PingMCP(ctx); err != nil {
					return exitWith(ExitUnreachable, inCommands(cmd, c, err))
				}
				bridge(ctx, sh, quietly(remote))
				return nil
			}
			serve, err := loadOptions(ServeScope, cmd.Flags(), sh.Env)
			if err != nil {
				return exitWith(ExitUsage, fmt.Errorf("cannot start: %w", err))
			}
			serve.Namespace = remote.Namespace
			return embedded(ctx, sh, serve)
		},
	}
	c.Flags().BoolVar(&own, "embedded", false, "start a daemon, also where one answers")
	addFlags(ServeScope, c.Flags())
	addFlags(ClientScope, c.Flags())
	return c
}

// daemonAt reports whether a daemon answers at the URL.
func daemonAt(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// embedded starts a daemon and bridges to it. A random token keeps out other users of the machine.
func embedded(ctx context.Context, sh Shell, o Options) (err error) {
	token := rand.Text()
	o.AccessOptions = app.AccessOptions{}
	who := access.Local()
	who.Namespace = cmp.Or(agent.Namespace(o.Namespace), who.Namespace)
	o.CompilerDir, o.GoCache = sh.CompilerDir, sh.GoCache
	o.Listen, o.Auth = "127.0.0.1:0", access.NewTokens(access.NewToken(who, token))
	o.Logger, o.Now, o.Env = newLogger(o, sh), sh.Clock, sh.Env
	d, err := app.New(ctx, o.Options)
	if err != nil {
		return exitWith(ExitFailed, fmt.Errorf("cannot start: %w", err))
	}
	d.Start()
	defer func() { err = exitWith(ExitFailed, errors.Join(err, sh.stop(d))) }()
	o.URL, o.Token = d.URL(), token
	bridge(ctx, sh, o)
	return nil
}

// quietly returns options that log only errors, because the daemon has its own log.
func quietly(o Options) Options {
	o.LogLevel = "error"
	return o
}

// bridge serves the agent until it closes stdin or a signal arrives.
func bridge(ctx context.Context, sh Shell, o Options) {
	// Catch SIGPIPE: when the agent exits, a write to its closed pipe must not end the daemon, which completes the
	// calls.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	mcp.Bridge(ctx, mcp.BridgeOptions{In: sh.Stdin, Out: sh.Stdout, URL: o.URL + "/mcp",
		HTTP:   &http.Client{Transport: identified{client.Transport(o.roots), o.Token, o.Namespace}},
		Logger: newLogger(o, sh)})
}

// identified is a transport that adds the access token and the namespace to each request.
type identified struct {
	http.RoundTripper
	token, namespace string
}

func (x identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	client.Identify(r.Header, x.token, x.namespace)
	return x.RoundTripper.RoundTrip(r)
}
