package app

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures an App. Start from DefaultOptions. New checks the options and returns an error that names the
// first invalid one.
//
// A field with tags is a setting of the command line. Help texts and documentation are generated from the tags:
//
//	name     flag --name and key in the configuration file
//	env      environment variable
//	secret   no flag, because other users can read command lines
//	value    what the value looks like
//	default  as documentation shows it; DefaultOptions has the value
//	help     one line
type Options struct {
	// Listen is the address, HOST:PORT. Port 0 takes a free port. Without access tokens it must be a loopback address.
	Listen string `name:"listen" env:"RECURGENT_LISTEN" value:"HOST:PORT" help:"address of the REST interface; port 0 takes a free one"`
	// DataDir is the directory of the store. It is required. Only one daemon can use it at a time.
	DataDir string `name:"data-dir" env:"RECURGENT_DATA_DIR" value:"DIR" default:"$XDG_STATE_HOME/recurgent, else ~/.local/state/recurgent" help:"where everything is stored; one daemon holds it at a time"`
	// AllowedHosts are host names that requests without tokens may use in addition to the loopback names.
	AllowedHosts []string `name:"allowed-hosts" env:"RECURGENT_ALLOWED_HOSTS" value:"HOST,..." default:"loopback names; any with tokens" help:"more names that this daemon is called by; without tokens it answers only to loopback names, against DNS rebinding"`
	// CORSOrigins are origins whose web pages may use the REST interface, such as https://app.example.com, or "*",
	// which requires tokens.
	CORSOrigins []string `name:"cors-origins" env:"RECURGENT_CORS_ORIGINS" value:"ORIGIN,..." default:"none" help:"origins whose web pages may use the interface (CORS), such as https://app.example.com, or *, which needs access tokens; cookies are never taken"`
	// PublicURL is the URL of the daemon for clients behind a proxy: scheme, host and path. "" means the URL that each
	// client uses.
	PublicURL string `name:"public-url" env:"RECURGENT_PUBLIC_URL" value:"URL" default:"the address by which a client reaches it" help:"address of the daemon as clients see it where a proxy is in front, such as https://tools.example.com or https://tools.example.com/base; it begins what the daemon says of its own addresses"`
	// H2C enables HTTP/2 without TLS in addition to HTTP/1.1.
	H2C bool `name:"h2c" env:"RECURGENT_H2C" help:"speak HTTP/2 without TLS too, for a proxy in front"`
	AccessOptions
	StoreOptions
	ClusterOptions
	SpendOptions

	// Provider is auto, openai, replay or record. auto means openai if a key or base URL is set, else replay.
	Provider string `name:"provider" env:"RECURGENT_PROVIDER" value:"auto|openai|replay|record" help:"who writes programs; auto is openai when a key or a base URL is set, else replay; record is openai and writes --recording"`
	// Model is the model's name on the server.
	Model string `name:"model" env:"RECURGENT_MODEL" value:"NAME" help:"the model to ask, as the server calls it"`
	// OpenAIKey is the API key of the model's server. It is never logged.
	OpenAIKey string `name:"openai-api-key" env:"OPENAI_API_KEY" secret:"yes" value:"KEY" default:"none" help:"key of the OpenAI-compatible server"`
	// OpenAIBaseURL is the URL of the model's server; "" means OpenAI's.
	OpenAIBaseURL string `name:"openai-base-url" env:"OPENAI_BASE_URL" value:"URL" default:"https://api.openai.com/v1" help:"base URL of the OpenAI-compatible server"`
	// Recording is the file that replay reads and record writes. Without it, replay uses the demo recording.
	Recording string `name:"recording" env:"RECURGENT_RECORDING" value:"FILE" default:"embedded demo" help:"recording that replay answers from, or that record writes"`
	// ProviderTimeout bounds one request to the model, 10 ms to 1 h.
	ProviderTimeout time.Duration `name:"provider-timeout" env:"RECURGENT_PROVIDER_TIMEOUT" value:"DURATION" help:"one model request"`
	ModelOptions

	// Runners is how many programs run concurrently, 1 to 1024.
	Runners int `name:"runners" env:"RECURGENT_RUNNERS" value:"N" default:"number of CPUs" help:"programs that run at the same time"`
	// RunnerMemory bounds the memory of all idle runners together, in bytes, at least 64 MiB. 0 means a quarter of the
	// memory of the control group or the machine.
	RunnerMemory Bytes `name:"runner-memory" env:"RECURGENT_RUNNER_MEMORY" value:"BYTES" default:"a quarter of the memory there is" help:"memory of idle runners, which keep their programs compiled, such as 2GiB; the least recently used end beyond it"`
	// CallTimeout bounds the run time of one program, 10 ms to 1 h. Waiting for host calls does not count.
	CallTimeout time.Duration `name:"call-timeout" env:"RECURGENT_CALL_TIMEOUT" value:"DURATION" help:"run time of one program; waiting for other programs or the network does not count"`
	// FetchAllow lists the hosts that programs may fetch from: host, host:port or *.domain, and "public" for any public
	// https address. Empty means "public".
	FetchAllow []string `name:"fetch-allow" env:"RECURGENT_FETCH_ALLOW" value:"HOST,..." default:"public" help:"hosts that programs may fetch: host, host:port or *.domain, which may also be private or http, and public for any public https address; without public only the named ones"`
	// FetchMax bounds a fetched body, after decompression and conversion to UTF-8, 1 KiB to 64 MiB.
	FetchMax Bytes `name:"fetch-max" env:"RECURGENT_FETCH_MAX" value:"BYTES" help:"largest body that a program may fetch, such as 4MiB; a larger one ends the fetch in resource_exhausted"`
	// FileMax bounds one file, 1 B to 1 TiB.
	FileMax Bytes `name:"file-max" env:"RECURGENT_FILE_MAX" value:"BYTES" default:"256MiB" help:"bytes of one file that a client uploads or a program makes"`
	// FilesMax bounds all files together, at least FileMax.
	FilesMax Bytes `name:"files-max" env:"RECURGENT_FILES_MAX" value:"BYTES" default:"10GiB" help:"bytes of all files together; more are refused until some expire or are deleted"`
	// StorageMax bounds all other stored data, at least 1 MiB. 0 means the size of the data directory's disk.
	StorageMax Bytes `name:"storage-max" env:"RECURGENT_STORAGE_MAX" value:"BYTES" default:"the size of the data directory's disk; 100 GiB with a database" help:"bytes of contexts, histories, values, tools and examples of all namespaces together; docs/multi-user.md has the parts of each, and of owners and namespaces"`
	// SecretsKeyFile contains the age identity to which stored secrets are sealed; "" means secrets.key in DataDir.
	SecretsKeyFile string `name:"secrets-key-file" env:"RECURGENT_SECRETS_KEY_FILE" value:"FILE" default:"secrets.key in the data directory" help:"identity (age) that stored secrets of connections are sealed to; made with the first one, mode 0600"`
	// SecretsDir is the directory of files that connections may name as their secrets; "" means that they may name
	// none.
	SecretsDir string `name:"secrets-dir" env:"RECURGENT_SECRETS_DIR" value:"DIR" default:"none" help:"directory of the files that connections may name as their secrets; links in it are not followed"`
	// SandboxRequire is the least confinement with which New succeeds: auto, full, reduced or process.
	SandboxRequire string `name:"sandbox-require" env:"RECURGENT_SANDBOX_REQUIRE" value:"auto|full|reduced|process" help:"do not start below this confinement; auto is reduced on Linux, process elsewhere"`
	// Isolation selects what may share a runner: the calls of one program and owner (program), or nothing (call).
	Isolation string `name:"isolation" env:"RECURGENT_ISOLATION" value:"program|call" help:"a runner for each program and owner, or for each call"`

	// Engine is what runs programs: auto, go or yaegi. ssa is an earlier name of go.
	Engine string `name:"engine" env:"RECURGENT_ENGINE" value:"auto|go|yaegi" help:"what runs programs: go compiles each with the Go compiler that the binary carries, or else with that of the same release on PATH; yaegi interprets plain programs and refuses others; auto is go where there is a compiler"`

	CompilerOptions

	// Durability is always, or interval:DURATION of 1 ms to 1 s.
	Durability string `name:"durability" env:"RECURGENT_DURABILITY" value:"always|interval:DURATION" help:"when a call's commit is synced to the disk: before its reply, or up to DURATION later; a power cut then takes the calls of the last DURATION"`
	// Native has no effect. Earlier versions compiled only hot programs.
	Native string `name:"native" env:"RECURGENT_NATIVE" value:"SETTING" default:"none" help:"accepted from earlier versions, and without effect: every program is compiled (--engine)"`

	// Policy is a patch to the policy, applied at each start before anything is served. It is a JSON object, or pairs
	// NAME=VALUE separated by white space. It overrides changes that were made while the daemon ran.
	Policy string `name:"policy" env:"RECURGENT_POLICY" value:"NAME=VALUE..." default:"as it was left" help:"switches and thresholds set at each start, before anything is served, as recurgentd policy set takes them: artifact_read_enabled=false repair_enabled=false, or a JSON object"`

	// MetricsPublic serves /metrics without a token, and without labels that name a role, a method or a namespace.
	MetricsPublic bool `name:"metrics-public" env:"RECURGENT_METRICS_PUBLIC" help:"show /metrics without a token, with no labels that name a role, a method or a namespace"`
	// MetricsNamespaces are the namespaces with metrics of their own, at most 50. They need not exist yet.
	MetricsNamespaces []string `name:"metrics-namespaces" env:"RECURGENT_METRICS_NAMESPACES" value:"NAME,..." default:"none" help:"namespaces that have figures of their own in /metrics, at most 50; the others count together there"`

	Auth access.Authenticator // authenticates requests instead of AccessOptions
	// destination of traces; nil means none. New sets Metrics, Logger and Version
	Traces *telemetry.TraceOptions
	Logger zerolog.Logger // of the daemon
	// store that replicas share, instead of DataDir; the caller closes it; nil means none
	Shared     store.Store
	ReplicaTTL time.Duration // how long a dead replica keeps its sessions; 0: 10 s
	// timeout of connections and requests between replicas; 0: 2 s
	ReplicaDial time.Duration
	ReplicaMove time.Duration                    // how long a request is retried while its session moves; 0: 3 s
	Env         func(name string) (string, bool) // looks up RECURGENT_SECRET_* for connections; nil: no variables
	// clock of records, windows and maintenance, for tests; nil means the machine's
	Now   func() time.Time
	World World // parts in the place of the real ones, for tests
}

// DefaultOptions returns the defaults of all options except DataDir.
func DefaultOptions() Options {
	return Options{
		Listen: "127.0.0.1:8420", Provider: "auto", Model: "gpt-4.1", ProviderTimeout: 120 * time.Second,
		Runners: goruntime.NumCPU(), CallTimeout: 30 * time.Second, FetchMax: 16 << 20, SandboxRequire: "auto",
		Isolation: "program", Engine: "auto", CompilerOptions: CompilerOptions{ProgramCache: 2 << 30,
			Builds: goruntime.NumCPU()}, Durability: durabilityAlways,
		FileMax: 256 << 20, FilesMax: 10 << 30, AccessOptions: AccessOptions{OIDCNameClaim: "sub",
			OIDCScopeClaim: "scope"},
		StoreOptions: StoreOptions{StoreURL: storeDisk},
		SpendOptions: SpendOptions{MaxCompletionTokens: provider.DefaultMaxCompletion},
		Logger:       zerolog.Nop(),
	}
}

// An OptionError names an invalid option and the reason.
type OptionError struct {
	Name   string // of the flag
	Reason string
}

func (e *OptionError) Error() string { return e.Name + ": " + e.Reason }

// Resolve replaces auto by the value that it stands for, reads the files that options name, and checks all options. It
// returns an *OptionError for the first invalid one. It may be called again; New calls it.
func (o *Options) Resolve() error {
	if o.Provider == "auto" {
		o.Provider = "replay"
		if o.OpenAIKey != "" || o.OpenAIBaseURL != "" {
			o.Provider = "openai"
		}
	}
	for _, check := range []func() error{o.checkAccess, o.checkListen, o.checkCluster, o.checkStore, o.checkProvider,
		o.checkModel, o.checkRecording, o.checkSpend, o.checkRunning, o.checkFiles, o.checkChoices, o.checkDurability,
		o.checkPolicy, o.checkSecrets, o.checkMetrics} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns an *OptionError.
func refuse(name, format string, args ...any) error {
	return &OptionError{Name: name, Reason: fmt.Sprintf(format, args...)}
}

// checkProvider checks the provider. A model needs a key or a base URL: without both it would ask OpenAI without a key.
func (o *Options) checkProvider() error {
	if err := oneOf("provider", o.Provider, "openai", "replay", "record"); err != nil {
		return err
	}
	switch {
	case o.Provider != "replay" && o.OpenAIKey == "" && o.OpenAIBaseURL == "":
		return refuse("provider", "%s needs OPENAI_API_KEY, --openai-api-key-file or --openai-base-url", o.Provider)
	case strings.ContainsAny(o.OpenAIKey, "\r\n \t"):
		return refuse("openai-api-key", "contains white space")
	case o.Provider != "replay" && strings.TrimSpace(o.Model) == "":
		return refuse("model", "must not be empty")
	}
	return nil
}

// checkRecording checks the recording. Replay needs an existing file; record creates one.
func (o *Options) checkRecording() error {
	if o.Provider == "record" && o.Recording == "" {
		return refuse("recording", "is required with --provider record: the file to write")
	}
	if o.Provider != "replay" || o.Recording == "" {
		return nil
	}
	info, err := os.Stat(o.Recording)
	switch {
	case err != nil:
		return refuse("recording", "%s", err)
	case info.IsDir():
		return refuse("recording", "%s is a directory", o.Recording)
	}
	return nil
}

// checkRunning checks the options of runners and fetches, and sets the default of RunnerMemory.
func (o *Options) checkRunning() error {
	if o.Runners < 1 || o.Runners > 1024 {
		return refuse("runners", "must be 1 to 1024, got %d", o.Runners)
	}
	if o.RunnerMemory == 0 {
		o.RunnerMemory = shareOfMemory()
	}
	if o.RunnerMemory < leastRunnerMemory {
		return refuse("runner-memory", "must be at least %s, got %s", leastRunnerMemory, o.RunnerMemory)
	}
	if err := o.CompilerOptions.check(); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		got  time.Duration
	}{{"call-timeout", o.CallTimeout}, {"provider-timeout", o.ProviderTimeout}} {
		if lo, hi := 10*time.Millisecond, time.Hour; d.got < lo || d.got > hi {
			return refuse(d.name, "must be %s to %s, got %s", lo, hi, d.got)
		}
	}
	for _, h := range o.FetchAllow {
		if !hostPattern(h) {
			return refuse("fetch-allow", "%q is not public, host, host:port or *.domain", h)
		}
	}
	if o.FetchMax < leastFetchMax || o.FetchMax > mostFetchMax {
		return refuse("fetch-max", "must be %s to %s, got %s", leastFetchMax, mostFetchMax, o.FetchMax)
	}
	return nil
}

func (o *Options) checkChoices() error {
	if err := oneOf("sandbox-require", o.SandboxRequire, "auto", "full", "reduced", "process"); err != nil {
		return err
	}
	if err := oneOf("engine", o.Engine, report.Engines()...); err != nil {
		return err
	}
	return oneOf("isolation", o.Isolation, "program", "call")
}

// checkPolicy only parses the policy patch. Its values are checked when it is applied.
func (o *Options) checkPolicy() error {
	if _, err := agent.PolicyPatchOf(o.Policy); err != nil {
		return refuse("policy", "%s", err)
	}
	return nil
}

// checkMetrics bounds the namespaces with metrics of their own, since each adds time series.
func (o *Options) checkMetrics() error {
	const most = 50
	if len(o.MetricsNamespaces) > most {
		return refuse("metrics-namespaces", "names %d namespaces; at most %d can have metrics of their own",
			len(o.MetricsNamespaces), most)
	}
	for _, name := range o.MetricsNamespaces {
		if err := agent.Namespace(name).Validate(); err != nil {
			return refuse("metrics-namespaces", "%s", err)
		}
		if name == telemetry.Other {
			return refuse("metrics-namespaces", "%s is the label of all other namespaces", name)
		}
	}
	return nil
}

// measured returns the namespaces with metrics of their own.
func (o *Options) measured() (names []agent.Namespace) {
	for _, name := range o.MetricsNamespaces {
		names = append(names, agent.Namespace(name))
	}
	return names
}

// notURL refuses a text that is not an http or https URL. shown is the text without secrets.
func notURL(name, text, shown string) error {
	if with, err := url.Parse("http://" + text); err == nil && !strings.Contains(text, "//") && with.Port() != "" {
		return refuse(name, "%q is not an http or https URL; write http://%s", shown, shown)
	}
	return refuse(name, "%q is not an http or https URL", shown)
}

// CheckURL returns an *OptionError of that name unless the text is an http or https URL without user, query and
// fragment.
func CheckURL(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return notURL(name, text, text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return refuse(name, "must not have a user, query or fragment")
	}
	return nil
}

func oneOf(name, got string, allowed ...string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return refuse(name, "must be one of %s, got %q", strings.Join(allowed, ", "), got)
}

// SandboxOptions returns the options of the sandbox that follow from o.
func (o *Options) SandboxOptions() sandbox.Options {
	so := sandbox.DefaultOptions()
	so.Runners, so.Waiting = o.Runners, max(so.Waiting, o.Runners)
	// a call is bounded by its own deadline, not by its runner's CPU limit
	so.RunnerCPU = max(so.RunnerCPU, 4*o.CallTimeout)
	so.RunnerMemory = int64(o.RunnerMemory)
	so.MaxHostBytes = max(so.MaxHostBytes, 8*int64(o.FetchMax)) // escaping makes a body up to six times as large
	so.Dir = o.DataDir
	so.Isolation, so.Require, so.Log = o.Isolation, o.SandboxRequire, o.Logger
	if o.Engine == report.EngineYaegi {
		so.Engine = o.Engine
	}
	return so
}

// Bytes is an amount of memory or disk space in bytes.
type Bytes int64

// ParseBytes parses an amount such as 2GiB, 512MiB, 1.5 GB or 1073741824. KiB, MiB and GiB are powers of 1024; kB, MB
// and GB are powers of 1000.
func ParseBytes(text string) (Bytes, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<60 {
		return 0, fmt.Errorf("%q is not an amount of memory, such as 512MiB or 2GiB", text)
	}
	return Bytes(n), nil
}

// String formats the amount with a binary unit, rounded, such as 512 MiB.
func (b Bytes) String() string { return humanize.IBytes(uint64(max(b, 0))) }

// Bounds of options.
const (
	leastRunnerMemory Bytes = 64 << 20
	leastProgramCache Bytes = 64 << 20
	leastFetchMax     Bytes = 1 << 10
	mostFetchMax      Bytes = 64 << 20
	// memoryUnknown is the result of shareOfMemory if the amount of memory cannot be determined.
	memoryUnknown Bytes = 512 << 20
)

// shareOfMemory returns a quarter of the control group's memory limit or, without a limit, of the machine's memory. It
// returns at least leastRunnerMemory.
func shareOfMemory() Bytes {
	n, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return memoryUnknown
	}
	return max(Bytes(min(n, 1<<60)/4), leastRunnerMemory)
}

// durabilityAlways syncs a call's journal entry before the call is answered.
const durabilityAlways = "always"

// Bounds of the interval. It is at most a second, because the files follow the journal after a second and must not
// contain what is not synced.
const (
	leastInterval   = time.Millisecond
	longestInterval = time.Second
)

// interval returns how long a call's journal entry may wait for its sync; 0 for durabilityAlways.
func (o *Options) interval() (time.Duration, error) {
	if o.Durability == durabilityAlways {
		return 0, nil
	}
	text, named := strings.CutPrefix(o.Durability, "interval:")
	d, err := time.ParseDuration(text)
	if !named || err != nil || d < leastInterval || d > longestInterval {
		return 0, refuse("durability",
			"must be always, or interval: and a duration of %s to %s such as interval:10ms, got %q", leastInterval,
			longestInterval, o.Durability)
	}
	return d, nil
}

// checkDurability checks the option, and writes its duration in a canonical form.
func (o *Options) checkDurability() error {
	d, err := o.interval()
	if err == nil && d > 0 {
		o.Durability = "interval:" + d.String()
	}
	return err
}

// tighten removes the access of other users to the data directory, which contains arguments, values and programs.
// Access of the group may be intended, for a backup, so it is only reported. A sticky directory such as /tmp, or that
// of another user, stays as it is.
func tighten(dir string, log zerolog.Logger) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return // it does not exist yet, and will be made with mode 0700
	}
	mode := info.Mode()
	switch {
	case mode.Perm()&0o077 == 0:
	case mode.Perm()&0o007 == 0:
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("the group of the data directory can read it; chmod 0700 it unless that is meant")
	case mode&fs.ModeSticky != 0:
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("every user of this machine can read the data directory; name a --data-dir of its own")
	default:
		if err := os.Chmod(dir, 0o700); err != nil {
			log.Warn().Err(err).Str("directory", dir).Str("permissions",
				mode.String()).Msg("every user of this machine can read the data directory; its owner should chmod 0700 it")
			return
		}
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("every user of this machine could read the data directory; its mode is 0700 now")
	}
}

// publicURL returns PublicURL without a trailing slash.
func (o *Options) publicURL() string { return strings.TrimSuffix(o.PublicURL, "/") }

// hostCharacters are the characters of host names, addresses and ports.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"

// checkPublicURL refuses a PublicURL with characters that have a meaning in headers or documents, since it is written
// there unescaped.
func (o *Options) checkPublicURL() error {
	if o.PublicURL == "" {
		return nil
	}
	const such = "write it as https://HOST or, where the proxy serves the daemon below a path, https://HOST/PATH, such as https://tools.example.com/base"
	u, err := url.Parse(o.PublicURL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		strings.Trim(u.Host, hostCharacters) != "":
		// do not quote it: it may contain a password
		return refuse("public-url", "is not a server's address: %s", such)
	case u.User != nil:
		return refuse("public-url", "must not have a user or a password, because clients see it; %s", such)
	case strings.ContainsAny(o.PublicURL, "?#"):
		return refuse("public-url", "must not have a query or a fragment, because paths are added to it; %s", such)
	case u.EscapedPath() != u.Path || strings.ContainsAny(u.Path, "'()*,;$&+=!@\\") || strings.Contains(u.Path, "//") ||
		u.Path != "" && path.Clean(u.Path) != "/"+strings.Trim(u.Path, "/"):
		return refuse("public-url", "must have a plain path of letters, digits, dots, - and _: %s", such)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return refuse("public-url", "must have a port of 1 to 65535: %s", such)
		}
	}
	return nil
}
