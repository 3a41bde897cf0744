package app

import (
	"fmt"
	"net/url"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures an App. Start from DefaultOptions. New checks them and names the field that it refuses.
//
// A field with tags is a setting of the command line; its tags are all that help texts and documents say of it:
//
//	name     flag --name and key in the configuration file
//	env      environment variable
//	secret   no flag, because other users can read command lines
//	value    what the value looks like
//	default  as documents say it; DefaultOptions has the value
//	help     one line
type Options struct {
	// Listen is the address, HOST:PORT. Port 0 takes a free one. Without tokens it must be a loopback address.
	Listen string `name:"listen" env:"RECURGENT_LISTEN" value:"HOST:PORT" help:"address of the REST interface; port 0 takes a free one"`
	// DataDir is where the store keeps its files. It is required; one daemon holds it at a time.
	DataDir string `name:"data-dir" env:"RECURGENT_DATA_DIR" value:"DIR" default:"$XDG_STATE_HOME/recurgent, else ~/.local/state/recurgent" help:"where everything is stored; one daemon holds it at a time"`
	// AllowedHosts are host names besides the loopback ones that requests without tokens may name.
	AllowedHosts []string `name:"allowed-hosts" env:"RECURGENT_ALLOWED_HOSTS" value:"HOST,..." default:"loopback names; any with tokens" help:"more names that this daemon is called by; without tokens it answers only to loopback names, against DNS rebinding"`
	// CORSOrigins are origins whose web pages may use the REST interface, such as https://app.example.com, or "*", which needs tokens.
	CORSOrigins []string `name:"cors-origins" env:"RECURGENT_CORS_ORIGINS" value:"ORIGIN,..." default:"none" help:"origins whose web pages may use the interface (CORS), such as https://app.example.com, or *, which needs access tokens; cookies are never taken"`
	// PublicURL is where clients reach the daemon through a proxy: scheme, host and path; "" is where each says that it does.
	PublicURL string `name:"public-url" env:"RECURGENT_PUBLIC_URL" value:"URL" default:"the address by which a client reaches it" help:"address of the daemon as clients see it where a proxy is in front, such as https://tools.example.com or https://tools.example.com/base; it begins what the daemon says of its own addresses"`
	// H2C makes the server speak HTTP/2 without TLS as well as HTTP/1.1.
	H2C bool `name:"h2c" env:"RECURGENT_H2C" help:"speak HTTP/2 without TLS too, for a proxy in front"`
	AccessOptions
	StoreOptions
	ClusterOptions
	SpendOptions

	// Provider is auto, openai, replay or record. auto is openai with a key or a base URL, else replay.
	Provider string `name:"provider" env:"RECURGENT_PROVIDER" value:"auto|openai|replay|record" help:"who writes programs; auto is openai when a key or a base URL is set, else replay; record is openai and writes --recording"`
	// Model is what the server calls the model.
	Model string `name:"model" env:"RECURGENT_MODEL" value:"NAME" help:"the model to ask, as the server calls it"`
	// OpenAIKey is sent to the model's server and never logged.
	OpenAIKey string `name:"openai-api-key" env:"OPENAI_API_KEY" secret:"yes" value:"KEY" default:"none" help:"key of the OpenAI-compatible server"`
	// OpenAIBaseURL is the model's server; "" is the one of OpenAI.
	OpenAIBaseURL string `name:"openai-base-url" env:"OPENAI_BASE_URL" value:"URL" default:"https://api.openai.com/v1" help:"base URL of the OpenAI-compatible server"`
	// Recording is the file that replay answers from and record writes; replay without one answers from the demo recording.
	Recording string `name:"recording" env:"RECURGENT_RECORDING" value:"FILE" default:"embedded demo" help:"recording that replay answers from, or that record writes"`
	// ProviderTimeout bounds one model request, 10 ms to 1 h.
	ProviderTimeout time.Duration `name:"provider-timeout" env:"RECURGENT_PROVIDER_TIMEOUT" value:"DURATION" help:"one model request"`
	ModelOptions

	// Runners is how many programs run at the same time, 1 to 1024.
	Runners int `name:"runners" env:"RECURGENT_RUNNERS" value:"N" default:"number of CPUs" help:"programs that run at the same time"`
	// RunnerMemory is how many bytes idle runners may hold together, at least 64 MiB. 0 means a quarter of the memory of the control group
	// or the machine.
	RunnerMemory Bytes `name:"runner-memory" env:"RECURGENT_RUNNER_MEMORY" value:"BYTES" default:"a quarter of the memory there is" help:"memory of idle runners, which keep their programs compiled, such as 2GiB; the least recently used end beyond it"`
	// CallTimeout bounds the run time of one program, 10 ms to 1 h. Waiting for host calls does not count.
	CallTimeout time.Duration `name:"call-timeout" env:"RECURGENT_CALL_TIMEOUT" value:"DURATION" help:"run time of one program; waiting for other programs or the network does not count"`
	// FetchAllow are the hosts that programs may fetch: host, host:port or *.domain, and "public" for any public https address beside
	// them. Empty is "public" alone.
	FetchAllow []string `name:"fetch-allow" env:"RECURGENT_FETCH_ALLOW" value:"HOST,..." default:"public" help:"hosts that programs may fetch: host, host:port or *.domain, which may also be private or http, and public for any public https address; without public only the named ones"`
	// FetchMax is how many bytes a fetched body may have, unpacked and as UTF-8, 1 KiB to 64 MiB.
	FetchMax Bytes `name:"fetch-max" env:"RECURGENT_FETCH_MAX" value:"BYTES" help:"largest body that a program may fetch, such as 4MiB; a larger one ends the fetch in resource_exhausted"`
	// FileMax is how many bytes one file may have, 1 B to 1 TiB.
	FileMax Bytes `name:"file-max" env:"RECURGENT_FILE_MAX" value:"BYTES" default:"256MiB" help:"bytes of one file that a client uploads or a program makes"`
	// FilesMax is how many bytes all files may have together, at least FileMax.
	FilesMax Bytes `name:"files-max" env:"RECURGENT_FILES_MAX" value:"BYTES" default:"10GiB" help:"bytes of all files together; more are refused until some expire or are deleted"`
	// StorageMax is how many bytes everything but files may have together, at least 1 MiB; 0: the size of the data directory's disk.
	StorageMax Bytes `name:"storage-max" env:"RECURGENT_STORAGE_MAX" value:"BYTES" default:"the size of the data directory's disk; 100 GiB with a database" help:"bytes of contexts, histories, values, tools and examples of all namespaces together; docs/multi-user.md has the parts of each, and of owners and namespaces"`
	// SecretsKeyFile holds the age identity that stored secrets of connections are sealed to; "" is secrets.key in DataDir.
	SecretsKeyFile string `name:"secrets-key-file" env:"RECURGENT_SECRETS_KEY_FILE" value:"FILE" default:"secrets.key in the data directory" help:"identity (age) that stored secrets of connections are sealed to; made with the first one, mode 0600"`
	// SecretsDir holds the files that connections may name as their secrets; "": they may name none.
	SecretsDir string `name:"secrets-dir" env:"RECURGENT_SECRETS_DIR" value:"DIR" default:"none" help:"directory of the files that connections may name as their secrets; links in it are not followed"`
	// SandboxRequire is the confinement below which New fails: auto, full, reduced or process.
	SandboxRequire string `name:"sandbox-require" env:"RECURGENT_SANDBOX_REQUIRE" value:"auto|full|reduced|process" help:"do not start below this confinement; auto is reduced on Linux, process elsewhere"`
	// Isolation is what a runner is kept for: program (and owner) or call.
	Isolation string `name:"isolation" env:"RECURGENT_ISOLATION" value:"program|call" help:"a runner for each program and owner, or for each call"`

	// Engine is what runs programs: auto, go or yaegi; ssa is an earlier name of go.
	Engine string `name:"engine" env:"RECURGENT_ENGINE" value:"auto|go|yaegi" help:"what runs programs: go compiles each with the Go compiler that the binary carries, or else with that of the same release on PATH; yaegi interprets plain programs and refuses others; auto is go where there is a compiler"`

	CompilerOptions

	// Durability is always, or interval:DURATION of 1 ms to 1 s.
	Durability string `name:"durability" env:"RECURGENT_DURABILITY" value:"always|interval:DURATION" help:"when a call's commit is synced to the disk: before its reply, or up to DURATION later; a power cut then takes the calls of the last DURATION"`
	// Native had hot programs compiled. It does nothing.
	Native string `name:"native" env:"RECURGENT_NATIVE" value:"SETTING" default:"none" help:"accepted from earlier versions, and without effect: every program is compiled (--engine)"`

	// Policy changes the policy at each start, before anything is served. It is a JSON object, or pairs NAME=VALUE separated by white
	// space. It overrides changes made while the daemon ran.
	Policy string `name:"policy" env:"RECURGENT_POLICY" value:"NAME=VALUE..." default:"as it was left" help:"switches and thresholds set at each start, before anything is served, as recurgentd policy set takes them: artifact_read_enabled=false repair_enabled=false, or a JSON object"`

	MetricsPublic bool `name:"metrics-public" env:"RECURGENT_METRICS_PUBLIC" help:"show /metrics without a token, with no labels that name a role, a method or a namespace"`
	// MetricsNamespaces are at most 50 names of namespaces, which need not exist yet.
	MetricsNamespaces []string `name:"metrics-namespaces" env:"RECURGENT_METRICS_NAMESPACES" value:"NAME,..." default:"none" help:"namespaces that have figures of their own in /metrics, at most 50; the others count together there"`

	Auth access.Authenticator // finds who sends a request, instead of AccessOptions
	// where traces go; nil: nowhere. Metrics, Logger and Version are filled in
	Traces *telemetry.TraceOptions
	Logger zerolog.Logger // of the daemon
	// shared with other replicas, in place of what DataDir holds; the caller closes it. nil: it is not shared
	Shared     store.Store
	ReplicaTTL time.Duration // how long sessions stay with a replica that is dead; 0: 10 s
	// how long a replica waits for another one's connection or word; 0: 2 s
	ReplicaDial time.Duration
	ReplicaMove time.Duration                    // how long a request follows a session that moves; 0: 3 s
	Env         func(name string) (string, bool) // where connections find RECURGENT_SECRET_*; nil: there are none
	// clock of records, windows and maintenance, for tests; nil: the machine's
	Now func() time.Time
}

// DefaultOptions returns the defaults of everything but DataDir.
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

// An OptionError says which option is refused and why.
type OptionError struct {
	Name   string // as the command line calls it
	Reason string
}

func (e *OptionError) Error() string { return e.Name + ": " + e.Reason }

// Resolve replaces auto by the value it stands for, and checks every option. Errors are *OptionError, for the first option that
// cannot be used. New does the same.
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

func refuse(name, format string, args ...any) error {
	return &OptionError{Name: name, Reason: fmt.Sprintf(format, args...)}
}

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

func (o *Options) checkRecording() error {
	if o.Provider == "record" && o.Recording == "" {
		return refuse("recording", "names the file that --provider record writes; it is not set")
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
			return refuse("fetch-allow", "%q is none of public, host, host:port, *.domain", h)
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

func (o *Options) checkPolicy() error {
	if _, err := agent.PolicyPatchOf(o.Policy); err != nil {
		return refuse("policy", "%s", err)
	}
	return nil
}

func (o *Options) checkMetrics() error {
	const most = 50
	if len(o.MetricsNamespaces) > most {
		return refuse("metrics-namespaces", "names %d namespaces, and %d at most may have figures of their own",
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

// measured returns the namespaces that have figures of their own.
func (o *Options) measured() (names []agent.Namespace) {
	for _, name := range o.MetricsNamespaces {
		names = append(names, agent.Namespace(name))
	}
	return names
}

// CheckURL returns an *OptionError of that name unless the text is an http or https address without user, query and fragment.
func CheckURL(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return refuse(name, "%q is not an http or https URL", text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return refuse(name, "must have neither user, query nor fragment")
	}
	return nil
}

func oneOf(name, got string, allowed ...string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return refuse(name, "must be one of %s, got %q", strings.Join(allowed, ", "), got)
}

// SandboxOptions are the options of the sandbox.
func (o *Options) SandboxOptions() sandbox.Options {
	so := sandbox.DefaultOptions()
	so.Runners, so.Waiting = o.Runners, max(so.Waiting, o.Runners)
	so.RunnerCPU = max(so.RunnerCPU, 4*o.CallTimeout) // a call is bounded by its own deadline, not by its runner's life
	so.RunnerMemory = int64(o.RunnerMemory)
	so.MaxHostBytes = max(so.MaxHostBytes, 8*int64(o.FetchMax)) // escaped, a body takes up to six times its size
	so.Dir = o.DataDir
	so.Isolation, so.Require, so.Log = o.Isolation, o.SandboxRequire, o.Logger
	if o.Engine == report.EngineYaegi {
		so.Engine = o.Engine
	}
	return so
}
