package cli

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options holds every setting of the binary. Each has a name, which is its flag and its key in the configuration
// file, and an environment variable; flags go over environment over file over default. The tags are read by the
// loader (settings.go), by the help texts and by the generator of docs/configuration.md:
//
//	name     flag --name and file key name
//	env      environment variable; an empty value is as if unset
//	secret   no flag, because command lines are seen by every user of the machine
//	for      serve or client: the commands that take it
//	value    what the value looks like
//	default  as told to people; DefaultOptions has the value
//	help     one line
type Options struct {
	Listen         string   `name:"listen" env:"RECURGENT_LISTEN" for:"serve" value:"HOST:PORT" help:"address of the REST interface; port 0 takes a free one"`
	DataDir        string   `name:"data-dir" env:"RECURGENT_DATA_DIR" for:"serve" value:"DIR" default:"$XDG_STATE_HOME/recurgent, else ~/.local/state/recurgent" help:"where everything is remembered; one daemon holds it at a time"`
	AuthTokensFile string   `name:"auth-tokens-file" env:"RECURGENT_AUTH_TOKENS_FILE" for:"serve" value:"FILE" default:"none: loopback only" help:"access tokens, a name and a token (or sha256:HEX of it) a line; required to listen on anything but loopback"`
	AllowedHosts   []string `name:"allowed-hosts" env:"RECURGENT_ALLOWED_HOSTS" for:"serve" value:"HOST,..." default:"loopback names; any with tokens" help:"more names that this daemon is called by; without tokens it answers only to loopback names, against DNS rebinding"`
	H2C            bool     `name:"h2c" env:"RECURGENT_H2C" for:"serve" help:"speak HTTP/2 without TLS too, for a proxy in front"`

	Provider        string        `name:"provider" env:"RECURGENT_PROVIDER" for:"serve" value:"auto|openai|replay|record" help:"who writes programs; auto is openai when a key or a base URL is set, else replay; record is openai and writes --recording"`
	Model           string        `name:"model" env:"RECURGENT_MODEL" for:"serve" value:"NAME" help:"the model to ask, as the server calls it"`
	OpenAIKey       string        `name:"openai-api-key" env:"OPENAI_API_KEY" secret:"yes" for:"serve" value:"KEY" default:"none" help:"key of the OpenAI-compatible server"`
	OpenAIKeyFile   string        `name:"openai-api-key-file" env:"OPENAI_API_KEY_FILE" for:"serve" value:"FILE" default:"none" help:"file that holds the key, instead of OPENAI_API_KEY"`
	OpenAIBaseURL   string        `name:"openai-base-url" env:"OPENAI_BASE_URL" for:"serve" value:"URL" default:"https://api.openai.com/v1" help:"base URL of the OpenAI-compatible server"`
	Recording       string        `name:"recording" env:"RECURGENT_RECORDING" for:"serve" value:"FILE" default:"embedded demo" help:"recording that replay answers from, or that record writes"`
	ProviderTimeout time.Duration `name:"provider-timeout" env:"RECURGENT_PROVIDER_TIMEOUT" for:"serve" value:"DURATION" help:"one model request"`

	Runners        int           `name:"runners" env:"RECURGENT_RUNNERS" for:"serve" value:"N" default:"number of CPUs" help:"programs that run at the same time"`
	CallTimeout    time.Duration `name:"call-timeout" env:"RECURGENT_CALL_TIMEOUT" for:"serve" value:"DURATION" help:"run time of one program; waiting for the host does not count"`
	FetchAllow     []string      `name:"fetch-allow" env:"RECURGENT_FETCH_ALLOW" for:"serve" value:"HOST,..." default:"any public https address" help:"hosts that programs may fetch: host, host:port or *.domain; a named one may also be private or http"`
	SandboxRequire string        `name:"sandbox-require" env:"RECURGENT_SANDBOX_REQUIRE" for:"serve" value:"auto|full|reduced|process" help:"do not start below this confinement; auto is reduced on Linux, process elsewhere"`
	Isolation      string        `name:"isolation" env:"RECURGENT_ISOLATION" for:"serve" value:"program|call" help:"a runner for each program and owner, or for each call"`

	Engine string `name:"engine" env:"RECURGENT_ENGINE" for:"serve" value:"auto|ssa|yaegi" help:"what runs programs: ssa runs all; auto gives plain programs without loops to yaegi, yaegi those with loops too"`

	LogLevel  string `name:"log-level" env:"RECURGENT_LOG_LEVEL" for:"serve" value:"debug|info|warn|error" help:"what the daemon tells on stderr"`
	LogFormat string `name:"log-format" env:"RECURGENT_LOG_FORMAT" for:"serve" value:"auto|json|text" help:"form of the daemon's log; auto is text on a terminal, else json"`

	OTLPEndpoint string `name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" for:"serve" value:"URL" default:"none: no traces" help:"OpenTelemetry collector that traces are sent to; see docs/observability.md for the other OTEL_* variables"`
	OTLPProtocol string `name:"otlp-protocol" env:"OTEL_EXPORTER_OTLP_PROTOCOL" for:"serve" value:"http/protobuf|grpc" help:"how traces are sent"`

	URL       string `name:"url" env:"RECURGENT_URL" for:"client" value:"URL" help:"the daemon that client commands speak to"`
	Token     string `name:"token" env:"RECURGENT_TOKEN" secret:"yes" for:"client" value:"TOKEN" default:"none" help:"access token of client commands"`
	TokenFile string `name:"token-file" env:"RECURGENT_TOKEN_FILE" for:"client" value:"FILE" default:"none" help:"file that holds the access token, instead of RECURGENT_TOKEN"`
}

// DefaultOptions returns the settings of a daemon that nobody configured. DataDir is "" until resolveServe finds it.
func DefaultOptions() Options {
	return Options{
		Listen: "127.0.0.1:8420", Provider: "auto", Model: "gpt-4.1",
		ProviderTimeout: 120 * time.Second,
		Runners:         goruntime.NumCPU(), CallTimeout: 30 * time.Second, SandboxRequire: "auto", Isolation: "program", Engine: "auto",
		LogLevel: "info", LogFormat: "auto", OTLPProtocol: telemetry.ProtocolHTTP, URL: "http://127.0.0.1:8420",
	}
}

// A settingError says which setting is refused, where it came from, and why.
type settingError struct{ Name, Source, Reason string }

func (e *settingError) Error() string {
	if e.Source == "" {
		return e.Name + ": " + e.Reason
	}
	return fmt.Sprintf("%s: %s (from %s)", e.Name, e.Reason, e.Source)
}

// resolveServe fills in what depends on the machine (the data directory, a key that stands in a file, auto) and
// checks the daemon's settings. It returns nil or a *settingError for the first that cannot be used.
func (o *Options) resolveServe(env func(string) (string, bool)) error {
	if o.DataDir == "" {
		dir, err := stateDir(env)
		if err != nil {
			return &settingError{Name: "data-dir", Reason: err.Error()}
		}
		o.DataDir = dir
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return &settingError{Name: "data-dir", Reason: err.Error()}
	}
	o.DataDir = dir
	if err := secretFile("openai-api-key-file", o.OpenAIKeyFile, &o.OpenAIKey); err != nil {
		return err
	}
	if o.Provider == "auto" {
		o.Provider = "replay"
		if o.OpenAIKey != "" || o.OpenAIBaseURL != "" {
			o.Provider = "openai"
		}
	}
	for _, check := range []func() error{o.validateListen, o.validateProvider, o.validateRunning} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// resolveClient does the same for the settings of the client commands.
func (o *Options) resolveClient() error {
	if err := secretFile("token-file", o.TokenFile, &o.Token); err != nil {
		return err
	}
	if strings.ContainsAny(o.Token, "\r\n \t") {
		return &settingError{Name: "token", Reason: "contains white space"}
	}
	return webAddress("url", o.URL)
}

// secretFile reads the secret out of the file, where one is named.
func secretFile(name, path string, secret *string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return &settingError{Name: name, Reason: err.Error()}
	}
	if *secret = strings.TrimSpace(string(data)); *secret == "" {
		return &settingError{Name: name, Reason: path + " is empty"}
	}
	return nil
}

// stateDir is where state belongs by the XDG base directory specification, on macOS too.
func stateDir(env func(string) (string, bool)) (string, error) {
	// The specification has relative paths ignored.
	if dir, _ := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "recurgent"), nil
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "recurgent"), nil
	}
	return "", fmt.Errorf("is not set, and neither XDG_STATE_HOME nor HOME says where it could be")
}

func (o *Options) validateListen() error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &settingError{Name: "listen", Reason: fmt.Sprintf("%q is not HOST:PORT, such as 127.0.0.1:8420", o.Listen)}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return &settingError{Name: "listen", Reason: fmt.Sprintf("%q is not a port number from 0 to 65535", port)}
	}
	if o.AuthTokensFile == "" && !loopback(host) {
		return &settingError{Name: "listen", Reason: fmt.Sprintf("%s can be reached from other machines; that needs --auth-tokens-file, or listen on 127.0.0.1:%s", o.Listen, port)}
	}
	for _, h := range o.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/ \t") {
			return &settingError{Name: "allowed-hosts", Reason: fmt.Sprintf("%q is not a host name", h)}
		}
	}
	return nil
}

// loopback reports whether only this machine can reach the host. Names other than localhost may resolve to anything.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

func (o *Options) validateProvider() error {
	if err := oneOf("provider", o.Provider, "openai", "replay", "record"); err != nil {
		return err
	}
	if o.OpenAIBaseURL != "" {
		if err := webAddress("openai-base-url", o.OpenAIBaseURL); err != nil {
			return err
		}
	}
	switch {
	case o.Provider != "replay" && o.OpenAIKey == "" && o.OpenAIBaseURL == "":
		return &settingError{Name: "provider", Reason: o.Provider + " needs OPENAI_API_KEY, --openai-api-key-file or --openai-base-url"}
	case strings.ContainsAny(o.OpenAIKey, "\r\n \t"):
		return &settingError{Name: "openai-api-key", Reason: "contains white space"}
	case o.Provider == "record" && o.Recording == "":
		return &settingError{Name: "recording", Reason: "names the file that --provider record writes; it is not set"}
	case o.Provider != "replay" && strings.TrimSpace(o.Model) == "":
		return &settingError{Name: "model", Reason: "must not be empty"}
	}
	if o.Provider == "replay" && o.Recording != "" {
		if info, err := os.Stat(o.Recording); err != nil {
			return &settingError{Name: "recording", Reason: err.Error()}
		} else if info.IsDir() {
			return &settingError{Name: "recording", Reason: o.Recording + " is a directory"}
		}
	}
	return nil
}

func (o *Options) validateRunning() error {
	if o.Runners < 1 || o.Runners > 1024 {
		return &settingError{Name: "runners", Reason: fmt.Sprintf("must be 1 to 1024, got %d", o.Runners)}
	}
	for _, d := range []struct {
		name   string
		got    time.Duration
		lo, hi time.Duration
	}{{"call-timeout", o.CallTimeout, 10 * time.Millisecond, time.Hour}, {"provider-timeout", o.ProviderTimeout, 10 * time.Millisecond, time.Hour}} {
		if d.got < d.lo || d.got > d.hi {
			return &settingError{Name: d.name, Reason: fmt.Sprintf("must be %s to %s, got %s", d.lo, d.hi, d.got)}
		}
	}
	for _, h := range o.FetchAllow {
		if !hostPattern(h) {
			return &settingError{Name: "fetch-allow", Reason: fmt.Sprintf("%q is none of host, host:port, *.domain", h)}
		}
	}
	for _, e := range []struct {
		name, got string
		allowed   []string
	}{{"sandbox-require", o.SandboxRequire, []string{"auto", "full", "reduced", "process"}},
		{"isolation", o.Isolation, []string{"program", "call"}},
		{"engine", o.Engine, []string{"auto", "ssa", "yaegi"}},
		{"log-level", o.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"log-format", o.LogFormat, []string{"auto", "json", "text"}}} {
		if err := oneOf(e.name, e.got, e.allowed...); err != nil {
			return err
		}
	}
	return nil
}

// hostPattern reports whether the text has one of the forms of --fetch-allow.
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
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	return true
}

func webAddress(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &settingError{Name: name, Reason: fmt.Sprintf("%q is not an http or https URL", text)}
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return &settingError{Name: name, Reason: "must have neither user, query nor fragment"}
	}
	return nil
}

func oneOf(name, got string, allowed ...string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return &settingError{Name: name, Reason: fmt.Sprintf("must be one of %s, got %q", strings.Join(allowed, ", "), got)}
}
