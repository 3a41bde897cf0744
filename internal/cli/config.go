package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options holds every setting of the binary: those of the daemon, and those that only the command line uses.
// app.Options explains the tags, except for: it names the commands that use a setting (serve or client; "" means
// serve). The loader (settings.go), the help texts and the generator of docs/configuration.md read the tags.
type Options struct {
	app.Options

	OpenAIKeyFile string `name:"openai-api-key-file" env:"OPENAI_API_KEY_FILE" value:"FILE" default:"none" help:"file that holds the key, instead of OPENAI_API_KEY"`
	// ModelHeadersFile holds headers in the form of ModelHeaders, including secret ones.
	ModelHeadersFile string `name:"model-headers-file" env:"RECURGENT_MODEL_HEADERS_FILE" value:"FILE" default:"none" help:"file with headers as of --model-header, one a line, that may be secret: authorization, cookie, *key*, *token*; never logged"`

	LogLevel  string `name:"log-level" env:"RECURGENT_LOG_LEVEL" value:"debug|info|warn|error" help:"what the daemon logs on stderr"`
	LogFormat string `name:"log-format" env:"RECURGENT_LOG_FORMAT" value:"auto|json|text" help:"format of the daemon's log; auto is text on a terminal, else json"`

	OTLPEndpoint string `name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" value:"URL" default:"none: no traces" help:"OpenTelemetry collector that traces are sent to; see docs/observability.md for the other OTEL_* variables"`
	OTLPProtocol string `name:"otlp-protocol" env:"OTEL_EXPORTER_OTLP_PROTOCOL" value:"http/protobuf|grpc" help:"how traces are sent"`

	URL       string `name:"url" env:"RECURGENT_URL" for:"client" value:"URL" help:"the daemon that client commands speak to"`
	Token     string `name:"token" env:"RECURGENT_TOKEN" secret:"yes" for:"client" value:"TOKEN" default:"none" help:"access token of client commands"`
	TokenFile string `name:"token-file" env:"RECURGENT_TOKEN_FILE" for:"client" value:"FILE" default:"none" help:"file that holds the access token, instead of RECURGENT_TOKEN"`
	CAFile    string `name:"ca-file" env:"RECURGENT_CA_FILE" for:"client" value:"FILE" default:"the system's" help:"certificates (PEM) that the daemon's own may be signed by, instead of those of the system"`

	Namespace string `name:"namespace" env:"RECURGENT_NAMESPACE" for:"client" value:"NAME" default:"that of the token" help:"namespace that client commands act in; another than the token's own needs a token with the scope admin"`

	roots *x509.CertPool // from CAFile; nil means the system's
}

// lines reports whether the setting is a list whose items may contain commas.
func (s Setting) lines() bool { return s.Kind == reflect.TypeFor[app.Lines]() }

// defaultOptions returns the settings without any configuration. DataDir is "" until resolveServe sets it.
func defaultOptions() Options {
	return Options{Options: app.DefaultOptions(), LogLevel: "info", LogFormat: "auto",
		OTLPProtocol: telemetry.ProtocolHTTP, URL: "http://127.0.0.1:8420"}
}

// A settingError reports an invalid setting, where it came from, and the reason.
type settingError struct{ Name, Source, Reason string }

func (e *settingError) Error() string {
	if e.Source == "" {
		return e.Name + ": " + e.Reason
	}
	return fmt.Sprintf("%s: %s (from %s)", e.Name, e.Reason, e.Source)
}

// asSetting converts an *app.OptionError to a *settingError.
func asSetting(err error) error {
	var bad *app.OptionError
	if errors.As(err, &bad) {
		return &settingError{Name: bad.Name, Reason: bad.Reason}
	}
	return err
}

// resolveServe resolves settings that depend on the machine (data directory, secret files, auto, traces) and checks the
// daemon's settings. It returns nil or a *settingError for the first invalid one.
func (o *Options) resolveServe(env func(string) (string, bool)) error {
	if err := o.resolveDataDir(env); err != nil {
		return &settingError{Name: "data-dir", Reason: err.Error()}
	}
	if err := secretFile("openai-api-key-file", o.OpenAIKeyFile, &o.OpenAIKey); err != nil {
		return err
	}
	var headers string
	if err := secretFile("model-headers-file", o.ModelHeadersFile, &headers); err != nil {
		return err
	}
	o.SecretHeaders = app.ParseLines(headers)
	if err := asSetting(o.Options.Resolve()); err != nil {
		return err
	}
	for _, e := range []struct {
		name, got string
		allowed   []string
	}{{"log-level", o.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"log-format", o.LogFormat, []string{"auto", "json", "text"}}} {
		if !slices.Contains(e.allowed, e.got) {
			return &settingError{Name: e.name, Reason: fmt.Sprintf("must be one of %s, got %q",
				strings.Join(e.allowed, ", "), e.got)}
		}
	}
	return o.resolveTraces(env)
}

func (o *Options) resolveDataDir(env func(string) (string, bool)) (err error) {
	if o.DataDir == "" {
		if o.DataDir, err = stateDir(env); err != nil {
			return err
		}
	}
	o.DataDir, err = filepath.Abs(o.DataDir)
	return err
}

// resolveClient resolves and checks the settings of the client commands.
func (o *Options) resolveClient() error {
	if err := secretFile("token-file", o.TokenFile, &o.Token); err != nil {
		return err
	}
	if strings.ContainsAny(o.Token, "\r\n \t") {
		return &settingError{Name: "token", Reason: "contains white space"}
	}
	if o.Namespace != "" {
		if err := agent.Namespace(o.Namespace).Validate(); err != nil {
			return &settingError{Name: "namespace", Reason: err.Error()}
		}
	}
	if o.CAFile != "" {
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return &settingError{Name: "ca-file", Reason: err.Error()}
		}
		if o.roots = x509.NewCertPool(); !o.roots.AppendCertsFromPEM(data) {
			return &settingError{Name: "ca-file", Reason: o.CAFile + " holds no certificate in PEM"}
		}
	}
	return asSetting(app.CheckURL("url", o.URL))
}

// checkPasswords rejects a password on the command line, which other users of the machine can read.
func checkPasswords(o Options, sources map[string]string) error {
	for name, text := range map[string]string{"store": o.StoreURL, "store-direct": o.StoreDirect} {
		u, err := url.Parse(text)
		if err != nil || sources[name] != "--"+name {
			continue
		}
		_, has := u.User.Password()
		if has || u.Query().Has("password") {
			return &settingError{Name: name,
				Reason: "holds a password, and other users can read command lines; use the environment or --store-file"}
		}
	}
	if sources["openai-base-url"] == "--openai-base-url" && o.SecretInBaseURL() {
		return &settingError{Name: "openai-base-url",
			Reason: "holds a key, and other users can read command lines; use OPENAI_BASE_URL"}
	}
	return nil
}

// secretFile reads the secret from the file at path, unless path is "".
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

// stateDir returns the state directory of the XDG base directory specification, on macOS as well.
func stateDir(env func(string) (string, bool)) (string, error) {
	// The specification requires relative paths to be ignored.
	if dir, _ := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "recurgent"), nil
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "recurgent"), nil
	}
	return "", fmt.Errorf("is not set, and neither XDG_STATE_HOME nor HOME says where it could be")
}
