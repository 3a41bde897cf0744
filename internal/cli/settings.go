package cli

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A Setting describes a field of Options with its tags.
type Setting struct {
	Index            []int // of the field, for reflect.Value.FieldByIndex
	Name, Env, Value string
	Default, Help    string
	Secret           bool
	Scope            Scope
	Kind             reflect.Type
}

// Settings returns the settings in the order of the struct. The list is shared and must not be changed.
func Settings() []Setting { return settings() }

// settings computes the list once, because at each start twenty commands declare flags from it.
var settings = sync.OnceValue(func() []Setting {
	defaults := reflect.ValueOf(defaultOptions())
	var list []Setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		if f.Tag.Get("name") == "" {
			continue // an internal field, not a setting
		}
		s := Setting{Index: f.Index, Name: f.Tag.Get("name"), Env: f.Tag.Get("env"), Value: f.Tag.Get("value"),
			Default: f.Tag.Get("default"), Help: f.Tag.Get("help"), Secret: f.Tag.Get("secret") != "",
			Scope: Scope(cmp.Or(f.Tag.Get("for"), string(ServeScope))), Kind: f.Type}
		if s.Default == "" {
			s.Default = fmt.Sprint(defaults.FieldByIndex(f.Index).Interface())
		}
		list = append(list, s)
	}
	return list
})

// flagValue holds the text of a flag. It is parsed once all layers are known.
type flagValue struct {
	setting Setting
	text    string
}

func (v *flagValue) String() string { return v.text }

// Set stores the text of the flag. A flag for a list of lines may be repeated.
func (v *flagValue) Set(s string) error {
	if v.setting.lines() && v.text != "" {
		s = v.text + "\n" + s
	}
	v.text = s
	return nil
}

func (v *flagValue) Type() string { return v.setting.Value }

// addFlags declares --config and the flags of the scope's settings, except those in without.
func addFlags(in Scope, flags *pflag.FlagSet, without ...string) {
	// A command may have the settings of both scopes.
	if flags.Lookup("config") == nil {
		flags.String("config", "", "configuration file: the settings below as YAML, name: value [RECURGENT_CONFIG]")
	}
	for _, s := range Settings() {
		if s.Secret || s.Scope != in || slices.Contains(without, s.Name) {
			continue
		}
		f := flags.VarPF(&flagValue{setting: s}, s.Name, "", fmt.Sprintf("%s [%s] (default %s)", s.Help, s.Env,
			s.Default))
		if s.Kind.Kind() == reflect.Bool {
			f.NoOptDefVal = "true"
		}
	}
}

// A Scope selects the settings that a command uses, so that a client command does not fail because of a daemon's
// setting.
type Scope string

const (
	ServeScope  Scope = "serve"
	ClientScope Scope = "client"
)

// loadOptions returns the checked settings of the scope. Flags override the environment, which overrides the file,
// which overrides the defaults. Errors are *settingError.
func loadOptions(in Scope, flags *pflag.FlagSet, env func(string) (string, bool)) (Options, error) {
	o, sources := defaultOptions(), map[string]string{}
	file, err := configFile(flags, env)
	if err != nil {
		return o, err
	}
	for _, s := range Settings() {
		text, source, ok := lookup(s, file, flags, env)
		if !ok || s.Scope != in {
			continue
		}
		if err := s.set(&o, text); err != nil {
			return o, &settingError{Name: s.Name, Source: source, Reason: err.Error()}
		}
		sources[s.Name] = source
	}
	if in == ClientScope {
		err = o.resolveClient()
	} else if err = checkPasswords(o, sources); err == nil {
		err = o.resolveServe(env)
	}
	// resolveClient and resolveServe do not know where a value came from.
	var bad *settingError
	if errors.As(err, &bad) {
		bad.Source = sources[bad.Name]
	}
	return o, err
}

// lookup returns the setting's text from the layer of highest precedence that has it, and its source.
func lookup(s Setting, file configuration, flags *pflag.FlagSet,
	env func(string) (string, bool)) (text, source string, ok bool) {
	if f := flags.Lookup(s.Name); f != nil && f.Changed {
		return f.Value.String(), "--" + s.Name, true
	}
	if text, _ := env(s.Env); text != "" {
		return text, s.Env, true
	}
	if text, ok := file.values[s.Name]; ok {
		return text, file.path, true
	}
	return "", "", false
}

// set parses the text into the field of the setting.
func (s Setting) set(o *Options, text string) error {
	field := reflect.ValueOf(o).Elem().FieldByIndex(s.Index)
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
	case []string:
		var list []string
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		field.Set(reflect.ValueOf(list))
	case app.Lines:
		field.Set(reflect.ValueOf(app.ParseLines(text)))
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		field.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		field.SetInt(int64(n))
	case app.Bytes:
		n, err := app.ParseBytes(text)
		if err != nil {
			return err
		}
		field.SetInt(int64(n))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration, such as 30s or 2m", text)
		}
		field.SetInt(int64(d))
	default:
		panic("a field of Options has a type that set does not read: " + s.Name) // unreachable: a test sets every field
	}
	return nil
}

// configuration holds the settings of a configuration file as text.
type configuration struct {
	path   string
	values map[string]string
}

// configFile reads the file named by --config or RECURGENT_CONFIG, or else the one in the XDG configuration directory
// if it exists.
func configFile(flags *pflag.FlagSet, env func(string) (string, bool)) (configuration, error) {
	path, named := "", true
	if f := flags.Lookup("config"); f != nil && f.Changed {
		path = f.Value.String()
	} else if p, _ := env("RECURGENT_CONFIG"); p != "" {
		path = p
	} else {
		path, named = defaultConfigFile(env), false
	}
	if path == "" {
		return configuration{}, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return configuration{}, nil
	}
	if err != nil {
		return configuration{}, &settingError{Name: "config", Reason: err.Error()}
	}
	return parseConfig(path, data)
}

func defaultConfigFile(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "recurgent", "config.yaml")
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".config", "recurgent", "config.yaml")
	}
	return ""
}

// parseConfig parses a YAML mapping of setting names to scalars or lists of scalars. Unknown names are errors, because
// ignoring a misspelt setting would be worse than failing.
func parseConfig(path string, data []byte) (configuration, error) {
	refuse := func(format string, args ...any) (configuration, error) {
		return configuration{}, &settingError{Name: "config", Reason: path + ": " + fmt.Sprintf(format, args...)}
	}
	var document map[string]yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return refuse("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", ""))
	}
	known := map[string]Setting{}
	for _, s := range Settings() {
		known[s.Name] = s
	}
	c := configuration{path: path, values: map[string]string{}}
	for name, node := range document {
		s, ok := known[name]
		if !ok {
			return refuse("line %d: %s is not a setting; see recurgentd serve --help", node.Line, name)
		}
		text, err := s.nodeText(node)
		if err != nil {
			return refuse("line %d: %s: %s", node.Line, s.Name, err)
		}
		if text != "" { // an empty value counts as unset, as in the environment
			c.values[name] = text
		}
	}
	return c, nil
}

// nodeText returns the text of a YAML scalar, or of a list in the form that set parses.
func (s Setting) nodeText(n yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		items := make([]string, 0, len(n.Content))
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return "", errors.New("must be a list of plain values")
			}
			items = append(items, c.Value)
		}
		if s.lines() {
			return strings.Join(items, "\n"), nil
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("must be a plain value or a list of them")
}

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
	return "", fmt.Errorf("is not set, and there is no default without XDG_STATE_HOME or HOME")
}

// resolveTraces decides whether and how traces are sent, by the variables of the OpenTelemetry specification. Its SDK
// reads the remaining ones.
func (o *Options) resolveTraces(env func(string) (string, bool)) error {
	value := func(name string) string { v, _ := env(name); return strings.TrimSpace(v) }
	// The endpoint for traces overrides the one for all signals.
	name, endpoint := "otlp-endpoint", o.OTLPEndpoint
	if e := value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); e != "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", e
	}
	exporter := value("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	if exporter != "" && exporter != "otlp" {
		return &settingError{Name: "OTEL_TRACES_EXPORTER", Reason: strconv.Quote(exporter) +
			" is neither otlp nor none"}
	}
	if err := app.CheckURL(name, endpoint); err != nil {
		return asSetting(err)
	}
	to := telemetry.DefaultTraceOptions()
	if name == "otlp-endpoint" {
		to.Endpoint = endpoint // the SDK reads the other variable itself
	}
	name, to.Protocol = "otlp-protocol", o.OTLPProtocol
	if p := value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		name, to.Protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", p
	}
	if to.Protocol != telemetry.ProtocolHTTP && to.Protocol != telemetry.ProtocolGRPC {
		return &settingError{Name: name, Reason: strconv.Quote(to.Protocol) + " is neither " + telemetry.ProtocolHTTP +
			" nor " + telemetry.ProtocolGRPC}
	}
	if n, err := strconv.Atoi(value("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		to.Queue = n
	}
	o.Traces = &to
	return nil
}
