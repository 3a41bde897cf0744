package cli

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// environment returns an environment with the pairs. HOME is a fresh directory, so that the tester's own files have no
// effect.
func environment(t *testing.T, pairs map[string]string) func(string) (string, bool) {
	t.Helper()
	home := t.TempDir()
	return func(name string) (string, bool) {
		if v, ok := pairs[name]; ok {
			return v, true
		}
		if name == "HOME" {
			return home, true
		}
		return "", false
	}
}

func noEnvironment(string) (string, bool) { return "", false }

func load(t *testing.T, in Scope, args []string, env map[string]string) (Options, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	addFlags(in, flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("parse %q: %v", args, err)
	}
	return loadOptions(in, flags, environment(t, env))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreThoseOfTheDesign(t *testing.T) {
	t.Parallel()
	o, err := load(t, ServeScope, nil, map[string]string{"XDG_STATE_HOME": "/var/state"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, got, want any }{
		{"listen", o.Listen, "127.0.0.1:8420"}, {"data-dir", o.DataDir, "/var/state/recurgent"},
		{"model", o.Model, "gpt-4.1"},
		{"provider", o.Provider, "replay"}, {"call-timeout", o.CallTimeout, 30 * time.Second},
		{"provider-timeout", o.ProviderTimeout, 120 * time.Second},
		{"sandbox-require", o.SandboxRequire, "auto"}, {"isolation", o.Isolation, "program"},
		{"engine", o.Engine, "auto"}, {"durability", o.Durability, "always"}, {"log-level", o.LogLevel, "info"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestDataDirectoryFallsBackToHome(t *testing.T) {
	t.Parallel()
	env := environment(t, nil)
	home, _ := env("HOME")
	for _, c := range []struct {
		xdg, want string
	}{{"", filepath.Join(home, ".local", "state", "recurgent")},
		{"relative/ignored", filepath.Join(home, ".local", "state", "recurgent")}, {"/x", "/x/recurgent"}} {
		got, err := stateDir(func(name string) (string, bool) {
			if name == "XDG_STATE_HOME" {
				return c.xdg, true
			}
			return env(name)
		})
		if err != nil || got != c.want {
			t.Errorf("XDG_STATE_HOME=%q: got %q, %v, want %q", c.xdg, got, err, c.want)
		}
	}
	if _, err := stateDir(func(string) (string, bool) { return "", false }); err == nil {
		t.Error("neither XDG_STATE_HOME nor HOME: got no error")
	}
}

// Every setting can be given by file, environment and, unless secret, flag. Later ones override earlier ones.
func TestEverySettingHasItsForms(t *testing.T) {
	t.Parallel()
	key, tokens, recording := writeFile(t, "key", "sk-1\n"), writeFile(t, "tokens", "alice 0123456789abcdef\n"),
		writeFile(t, "demo.jsonl", "")
	cert, private := apptest.NewPair(t, 1, time.Now().Add(time.Hour)).Write(t, t.TempDir())
	headers := writeFile(t, "headers", "# of the gateway\nAuthorization: Basic abc\n")
	url := writeFile(t, "url", "postgres://u:secret@d/x\npostgres://u:secret@e/x\n")
	// Each setting has three valid values: for the file, the environment and the flag.
	values := map[string][3]string{
		"listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, "data-dir": {"/a", "/b", "/c"},
		"auth-tokens-file": {tokens, tokens, tokens},
		"allowed-hosts":    {"a", "b", "c,d"}, "cors-origins": {"https://a.example", "http://localhost:5173",
			"https://b.example,chrome-extension://abc"}, "public-url": {"https://a.example",
			"http://b.example:8080/base", "https://[2001:db8::1]:8443/a/b"}, "h2c": {"true", "true", "true"},
		"provider": {"replay", "replay", "replay"}, "model": {"a", "b", "c"},
		"openai-api-key": {"a", "b", ""}, "openai-api-key-file": {key, key, key},
		"openai-base-url": {"http://a/v1", "http://b/v1", "http://c/v1"},
		"recording":       {recording, recording, recording}, "provider-timeout": {"1s", "2s", "3s"},
		"runners": {"1", "2", "3"}, "runner-memory": {"64MiB", "1GiB", "2GB"}, "call-timeout": {"1s", "2s", "3s"},
		"fetch-allow": {"a.example", "b.example:80", "public,*.c.example,10.0.0.1"},
		"fetch-max":   {"1KiB", "4MiB", "64MiB"}, "file-max": {"1MiB", "2MiB", "3MiB"},
		"files-max": {"1GiB", "2GiB", "3GiB"}, "storage-max": {"1GiB", "2GiB", "3GiB"},
		"max-completion-tokens": {"1024", "2048", "4096"}, "spend-day-tokens": {"1", "2", "3"},
		"model-prices": {"/p/a", "/p/b", "/p/c"}, "model-header": {"X-A=1, 2", "X-B=2", "X-C: 3=4"},
		"model-headers-file": {headers, headers, headers}, "model-context": {"1024", "4096", "0"},
		"secrets-key-file": {"/k/a", "/k/b", "/k/c"}, "secrets-dir": {t.TempDir(), t.TempDir(), t.TempDir()},
		"sandbox-require": {"full", "reduced", "process"}, "isolation": {"call", "program", "call"},
		"engine": {"go", "yaegi", "auto"}, "native": {"off", "/usr/local/go", "auto"},
		"program-cache": {"64MiB", "1GiB", "2GB"}, "builds": {"1", "2", "3"},
		"durability": {"interval:5ms", "always", "interval:1s"},
		"policy":     {"repair_enabled=false", `{"repair_enabled": false}`, "degraded.rate=0.5 repair_enabled=true"},
		"log-level":  {"debug", "warn", "error"},
		"log-format": {"json", "text", "auto"}, "otlp-endpoint": {"http://a:4318", "http://b:4318", "https://c"},
		"otlp-protocol": {"http/protobuf", "grpc", "http/protobuf"}, "url": {"http://a", "http://b", "https://c"},
		"token": {"a", "b", ""}, "token-file": {key, key, key},
		"oidc-issuer": {"https://a", "http://127.0.0.1:1/b", "https://c/d"}, "oidc-audience": {"a", "b", "c"},
		"oidc-name-claim": {"email", "b", "c"}, "oidc-namespace-claim": {"a", "https://b/c", "d"},
		"oidc-scope-claim": {"a", "b", "c"}, "oidc-rate": {"1/s", "0.5/s", "50/s"}, "oidc-concurrency": {"1", "2", "3"},
		"tls-cert": {cert, cert, cert}, "tls-key": {private, private, private}, "ca-file": {cert, cert, cert},
		"namespace": {"a", "b", "c"}, "metrics-namespaces": {"acme", "b,c", "default"},
		"metrics-public": {"true", "true", "true"},
		"store":          {"postgres://a/x", "postgresql://u@b:1/y", "postgres://c/z"}, "store-file": {url, url, url},
		"store-direct": {"postgres://a/x", "postgresql://u@b:1/y", "postgres://c/z"},
		"advertise":    {"10.0.0.1:1", "b:2", "127.0.0.1:3"}, "cluster-listen": {"127.0.0.1:1", ":2", "127.0.0.1:3"},
		"cluster-ca": {cert, cert, cert}, "cluster-cert": {cert, cert, cert},
		"cluster-key": {private, private, private},
	}
	cluster := func(but string) map[string]string {
		all := map[string]string{"advertise": "127.0.0.1:1", "cluster-ca": cert, "cluster-cert": cert,
			"cluster-key": private}
		out := map[string]string{}
		for name, v := range all {
			if name != but {
				out["RECURGENT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = v
			}
		}
		return out
	}
	// Settings that require others.
	others := map[string]map[string]string{"oidc-issuer": {"RECURGENT_OIDC_AUDIENCE": "x"},
		"oidc-audience":        {"RECURGENT_OIDC_ISSUER": "https://x"},
		"oidc-namespace-claim": {"RECURGENT_OIDC_ISSUER": "https://x", "RECURGENT_OIDC_AUDIENCE": "x"},
		"oidc-rate":            {"RECURGENT_OIDC_ISSUER": "https://x", "RECURGENT_OIDC_AUDIENCE": "x"},
		"oidc-concurrency":     {"RECURGENT_OIDC_ISSUER": "https://x", "RECURGENT_OIDC_AUDIENCE": "x"},
		"tls-cert":             {"RECURGENT_TLS_KEY": private}, "tls-key": {"RECURGENT_TLS_CERT": cert}}
	others["store-direct"] = map[string]string{"RECURGENT_STORE": "postgres://a/x"}
	for _, name := range []string{"advertise", "cluster-listen", "cluster-ca", "cluster-cert", "cluster-key"} {
		others[name] = cluster(name)
	}
	for _, s := range Settings() {
		v, ok := values[s.Name]
		if !ok {
			t.Errorf("%s: the test has no values for it", s.Name)
			continue
		}
		field := func(o Options) any { return reflect.ValueOf(o).FieldByIndex(s.Index).Interface() }
		want := func(text string) any {
			var o Options
			if err := s.set(&o, text); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			return field(o)
		}
		config := writeFile(t, "config.yaml", s.Name+": "+quoted(v[0])+"\n")
		env := map[string]string{"RECURGENT_CONFIG": config}
		maps.Copy(env, others[s.Name])
		o, err := load(t, s.Scope, nil, env)
		if err != nil || !reflect.DeepEqual(field(o), want(v[0])) {
			t.Errorf("%s by file: got %v, %v, want %v", s.Name, field(o), err, want(v[0]))
		}
		env[s.Env] = v[1]
		if o, err = load(t, s.Scope, nil, env); err != nil || !reflect.DeepEqual(field(o), want(v[1])) {
			t.Errorf("%s by %s over the file: got %v, %v, want %v", s.Name, s.Env, field(o), err, want(v[1]))
		}
		if s.Secret {
			continue
		}
		if o, err = load(t, s.Scope, []string{"--" + s.Name + "=" + v[2]},
			env); err != nil || !reflect.DeepEqual(field(o), want(v[2])) {
			t.Errorf("%s by flag over both: got %v, %v, want %v", s.Name, field(o), err, want(v[2]))
		}
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestSettingsAreDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Settings() {
		if s.Name == "" || s.Env == "" || s.Help == "" || s.Default == "" ||
			(s.Scope != ServeScope && s.Scope != ClientScope) {
			t.Errorf("incomplete tags: %+v", s)
		}
		if s.Value == "" && s.Kind.Kind() != reflect.Bool {
			t.Errorf("%s: no value form", s.Name)
		}
		if seen[s.Name] || seen[s.Env] {
			t.Errorf("%s: name or variable is taken twice", s.Name)
		}
		seen[s.Name], seen[s.Env] = true, true
	}
}

func TestProviderAuto(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "replay"},
		{map[string]string{"OPENAI_API_KEY": "sk-x"}, "openai"},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, "openai"},
		{map[string]string{"OPENAI_API_KEY_FILE": writeFile(t, "key", "sk-x\n")}, "openai"},
		{map[string]string{"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}, "replay"}, // empty counts as unset
		{map[string]string{"OPENAI_API_KEY": "sk-x", "RECURGENT_PROVIDER": "replay"}, "replay"},
	} {
		o, err := load(t, ServeScope, nil, c.env)
		if err != nil || o.Provider != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.env, o.Provider, err, c.want)
		}
	}
}

// Every invalid setting is refused at the start, in one line that names the setting and its source.
func TestBadSettingsAreRefusedByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, private := apptest.NewPair(t, 1, time.Now().Add(time.Hour)).Write(t, t.TempDir())
	_, other := apptest.NewPair(t, 2, time.Now().Add(time.Hour)).Write(t, t.TempDir())
	for _, c := range []struct {
		scope Scope
		args  []string
		env   map[string]string
		want  []string // parts of the message
	}{
		{ServeScope, []string{"--listen", "8420"}, nil, []string{"listen", "HOST:PORT", "--listen"}},
		{ServeScope, []string{"--listen", "127.0.0.1:99999"}, nil, []string{"listen", "port"}},
		{ServeScope, nil, map[string]string{"RECURGENT_LISTEN": "0.0.0.0:8420"},
			[]string{"listen", "--auth-tokens-file", "RECURGENT_LISTEN"}},
		{ServeScope, []string{"--listen", ":8420"}, nil, []string{"listen", "--auth-tokens-file"}},
		{ServeScope, []string{"--listen", "[::]:8420"}, nil, []string{"listen", "--auth-tokens-file"}},
		{ServeScope, []string{"--listen", "example.org:8420"}, nil, []string{"listen", "--auth-tokens-file"}},
		{ServeScope, []string{"--auth-tokens-file", writeFile(t, "tokens", "a b\n")}, nil,
			[]string{"auth-tokens-file", "line 1", "16"}},
		{ServeScope, []string{"--listen", ":8420", "--tls-cert", cert, "--tls-key", private}, nil,
			[]string{"listen", "--auth-tokens-file"}},
		{ServeScope, []string{"--oidc-issuer", "http://id.example", "--oidc-audience", "a"}, nil,
			[]string{"oidc-issuer", "https"}},
		{ServeScope, []string{"--oidc-issuer", "https://id.example"}, nil, []string{"oidc-audience", "required"}},
		{ServeScope, []string{"--oidc-audience", "a"}, nil, []string{"oidc-audience", "--oidc-issuer"}},
		{ServeScope, []string{"--oidc-namespace-claim", "a"}, nil, []string{"oidc-namespace-claim", "--oidc-issuer"}},
		{ServeScope, []string{"--oidc-rate", "5/s"}, nil, []string{"oidc-rate", "--oidc-issuer"}},
		{ServeScope, []string{"--oidc-concurrency", "5"}, nil, []string{"oidc-concurrency", "--oidc-issuer"}},
		{ServeScope, []string{"--oidc-issuer", "https://id.example", "--oidc-audience", "a", "--oidc-rate", "5"}, nil,
			[]string{"oidc-rate", "50/s"}},
		{ServeScope, []string{"--oidc-issuer", "https://id.example", "--oidc-audience", "a", "--oidc-concurrency",
			"-1"}, nil, []string{"oidc-concurrency", "1 to 1000000"}},
		{ServeScope, []string{"--tls-cert", cert}, nil, []string{"tls-key", "required"}},
		{ServeScope, []string{"--tls-key", private}, nil, []string{"tls-cert", "required"}},
		{ServeScope, []string{"--tls-cert", cert, "--tls-key", other}, nil, []string{"tls-cert", "does not match"}},
		{ServeScope, []string{"--tls-cert", private, "--tls-key", private}, nil, []string{"tls-cert", "certificate"}},
		{ServeScope, []string{"--tls-cert", cert, "--tls-key", filepath.Join(dir, "none")}, nil,
			[]string{"tls-cert", "none"}},
		{ClientScope, []string{"--ca-file", private}, nil, []string{"ca-file", "no certificate"}},
		{ClientScope, []string{"--ca-file", filepath.Join(dir, "none")}, nil, []string{"ca-file", "none"}},
		{ServeScope, []string{"--allowed-hosts", "http://a"}, nil, []string{"allowed-hosts"}},
		{ServeScope, []string{"--cors-origins", "https://a.example/"}, nil,
			[]string{"cors-origins", "https://app.example.com"}},
		{ServeScope, nil, map[string]string{"RECURGENT_CORS_ORIGINS": "https://A.example"},
			[]string{"cors-origins", "lower case"}},
		{ServeScope, []string{"--cors-origins", "https://*.example"}, nil, []string{"cors-origins"}},
		{ServeScope, []string{"--cors-origins", "https://a.example:443"}, nil, []string{"cors-origins", "port"}},
		{ServeScope, []string{"--cors-origins", "null"}, nil, []string{"cors-origins"}},
		{ServeScope, []string{"--cors-origins", "*"}, nil, []string{"cors-origins", "--auth-tokens-file"}},
		{ServeScope, []string{"--public-url", "tools.example.com"}, nil,
			[]string{"public-url", "https://HOST", "--public-url"}},
		{ServeScope, []string{"--public-url", "https://"}, nil, []string{"public-url", "https://HOST"}},
		{ServeScope, []string{"--public-url", "ftp://a.example"}, nil, []string{"public-url", "https://HOST"}},
		{ServeScope, []string{"--public-url", "/base"}, nil, []string{"public-url", "https://HOST"}},
		{ServeScope, nil, map[string]string{"RECURGENT_PUBLIC_URL": "https://a.example\""},
			[]string{"public-url", "https://HOST", "RECURGENT_PUBLIC_URL"}},
		{ServeScope, []string{"--public-url", "https://ann:geheim@a.example"}, nil,
			[]string{"public-url", "a password"}},
		{ServeScope, []string{"--public-url", "https://ann:geheim@a.example:x"}, nil,
			[]string{"public-url", "https://HOST"}},
		{ServeScope, []string{"--public-url", "https://a.example?x=geheim"}, nil, []string{"public-url", "a query"}},
		{ServeScope, []string{"--public-url", "https://a.example/#x"}, nil, []string{"public-url", "a fragment"}},
		{ServeScope, []string{"--public-url", "https://a.example/a/../b"}, nil, []string{"public-url", "plain path"}},
		{ServeScope, []string{"--public-url", "https://a.example/a b"}, nil, []string{"public-url", "plain path"}},
		{ServeScope, []string{"--public-url", "https://a.example/a%22"}, nil, []string{"public-url", "plain path"}},
		{ServeScope, []string{"--public-url", "https://a.example//"}, nil, []string{"public-url", "plain path"}},
		{ServeScope, []string{"--public-url", "https://a.example:0"}, nil, []string{"public-url", "port"}},
		{ServeScope, []string{"--provider", "gpt"}, nil, []string{"provider", "openai", "gpt"}},
		{ServeScope, []string{"--provider", "openai"}, nil, []string{"provider", "OPENAI_API_KEY"}},
		{ServeScope, []string{"--provider", "record", "--openai-base-url", "http://x/v1"}, nil, []string{"recording"}},
		{ServeScope, []string{"--openai-base-url", "localhost:11434"}, nil,
			[]string{"openai-base-url", "--openai-base-url"}},
		{ServeScope, nil, map[string]string{"OPENAI_BASE_URL": "127.0.0.1:8080/v1"},
			[]string{`"127.0.0.1:8080/v1" is not an http or https URL; write http://127.0.0.1:8080/v1`}},
		{ServeScope, []string{"--openai-base-url", "http://user:secret@h/v1"}, nil, []string{"openai-base-url"}},
		{ServeScope, []string{"--openai-base-url", "https://h/v1?api_key=geheim"}, nil,
			[]string{"openai-base-url", "OPENAI_BASE_URL"}},
		{ServeScope, nil, map[string]string{"OPENAI_BASE_URL": "ftp://h/v1?api_key=geheim"},
			[]string{"openai-base-url", "api_key"}},
		{ServeScope, []string{"--model-header", "X-A"}, nil, []string{"model-header", "NAME=VALUE"}},
		{ServeScope, []string{"--model-header", "X A=1"}, nil, []string{"model-header", "X A"}},
		{ServeScope, []string{"--model-header", "content-length=1"}, nil, []string{"model-header", "daemon itself"}},
		{ServeScope, []string{"--model-header", "X-Fine=1", "--model-header", "Authorization=geheim"}, nil,
			[]string{"model-header", "--model-headers-file"}},
		{ServeScope, nil, map[string]string{"RECURGENT_MODEL_HEADER": "X-Fine=1\ncf-aig-token: geheim"},
			[]string{"model-header", "cf-aig-token", "--model-headers-file"}},
		{ServeScope, []string{"--model-header", "X-Api-Key=geheim"}, nil,
			[]string{"model-header", "--model-headers-file"}},
		{ServeScope, []string{"--model-headers-file", writeFile(t, "headers", "geheim\n")}, nil,
			[]string{"model-headers-file", "NAME=VALUE"}},
		{ServeScope, []string{"--model-context", "17"}, nil, []string{"model-context", "1024"}},
		{ServeScope, []string{"--openai-api-key-file", filepath.Join(dir, "none")}, nil,
			[]string{"openai-api-key-file", "none"}},
		{ServeScope, []string{"--openai-api-key-file", writeFile(t, "empty", "\n")}, nil,
			[]string{"openai-api-key-file", "empty"}},
		{ServeScope, nil, map[string]string{"OPENAI_API_KEY": "a b"}, []string{"openai-api-key", "OPENAI_API_KEY"}},
		{ServeScope, []string{"--recording", filepath.Join(dir, "none")}, nil, []string{"recording", "none"}},
		{ServeScope, []string{"--recording", dir}, nil, []string{"recording", "directory"}},
		{ServeScope, []string{"--data-dir", dir, "--secrets-key-file", filepath.Join(dir, "deep", "key")}, nil,
			[]string{"secrets-key-file", "exports"}},
		{ServeScope, []string{"--data-dir", dir, "--secrets-dir", filepath.Join(dir, "secrets")}, nil,
			[]string{"secrets-dir", "exports"}},
		{ServeScope, []string{"--secrets-dir", filepath.Join(dir, "none")}, nil, []string{"secrets-dir", "none"}},
		{ServeScope, []string{"--runners", "0"}, nil, []string{"runners", "1 to 1024"}},
		{ServeScope, []string{"--runners", "many"}, nil, []string{"runners", "whole number"}},
		{ServeScope, []string{"--runner-memory", "much"}, nil, []string{"runner-memory", "2GiB"}},
		{ServeScope, []string{"--runner-memory", "1MiB"}, nil, []string{"runner-memory", "64 MiB"}},
		{ServeScope, []string{"--runner-memory", "900EB"}, nil, []string{"runner-memory", "2GiB"}},
		{ServeScope, []string{"--call-timeout", "0s"}, nil, []string{"call-timeout", "10ms"}},
		{ServeScope, []string{"--call-timeout", "30"}, nil, []string{"call-timeout", "duration"}},
		{ServeScope, []string{"--provider-timeout", "48h"}, nil, []string{"provider-timeout"}},
		{ServeScope, []string{"--fetch-allow", "https://a.example"}, nil, []string{"fetch-allow", "*.domain"}},
		{ServeScope, []string{"--fetch-allow", "a.example,*"}, nil, []string{"fetch-allow"}},
		{ServeScope, []string{"--fetch-allow", "a:0"}, nil, []string{"fetch-allow"}},
		{ServeScope, []string{"--fetch-max", "1"}, nil, []string{"fetch-max", "1.0 KiB"}},
		{ServeScope, []string{"--fetch-max", "1GiB"}, nil, []string{"fetch-max", "64 MiB"}},
		{ServeScope, []string{"--sandbox-require", "none"}, nil, []string{"sandbox-require"}},
		{ServeScope, []string{"--isolation", "none"}, nil, []string{"isolation"}},
		{ServeScope, []string{"--durability", "interval:1h"}, nil, []string{"durability", "interval:10ms"}},
		{ServeScope, []string{"--engine", "interp"}, nil, []string{"engine"}},
		{ServeScope, []string{"--log-level", "loud"}, nil, []string{"log-level"}},
		{ServeScope, []string{"--log-format", "xml"}, nil, []string{"log-format"}},
		{ServeScope, []string{"--h2c=maybe"}, nil, []string{"h2c"}},
		{ServeScope, []string{"--config", filepath.Join(dir, "none.yaml")}, nil, []string{"config", "none.yaml"}},
		{ServeScope, []string{"--config", writeFile(t, "c.yaml", "listne: x\n")}, nil,
			[]string{"config", "line 1", "listne"}},
		{ServeScope, []string{"--config", writeFile(t, "c.yaml", "- a\n")}, nil, []string{"config"}},
		{ServeScope, []string{"--config", writeFile(t, "c.yaml", "model: {a: b}\n")}, nil, []string{"config", "model"}},
		{ServeScope, []string{"--config", writeFile(t, "c.yaml", "model: [a, [b]]\n")}, nil,
			[]string{"config", "model"}},
		{ServeScope, []string{"--config", writeFile(t, "c.yaml", "runners: -1\n")}, nil, []string{"runners", "c.yaml"}},
		{ClientScope, []string{"--url", "127.0.0.1:8420"}, nil, []string{"url"}},
		{ClientScope, nil, map[string]string{"RECURGENT_TOKEN": "a b"}, []string{"token", "RECURGENT_TOKEN"}},
		{ServeScope, []string{"--store", "mysql://a/b"}, nil, []string{"store", "postgres://"}},
		{ServeScope, []string{"--store", "postgres://u:geheim@a/b"}, nil,
			[]string{"store", "password", "--store-file"}},
		{ServeScope, []string{"--store", "postgres://u@a/b?password=geheim"}, nil, []string{"store", "password"}},
		{ServeScope, []string{"--store", "postgres://u@a/b", "--durability", "interval:5ms"}, nil,
			[]string{"durability"}},
		{ServeScope, []string{"--store-direct", "postgres://u@a/b"}, nil, []string{"store-direct"}},
		{ServeScope, []string{"--store-file", writeFile(t, "empty", "\n")}, nil, []string{"store-file", "0 URLs"}},
		{ServeScope, []string{"--store-file", writeFile(t, "one", "host=a password=geheim\n")}, nil,
			[]string{"store-file"}},
		{ServeScope, []string{"--store", "postgres://u@a/b", "--store-file", writeFile(t, "two", "postgres://a/b\n")},
			nil, []string{"store-file", "combined with --store"}},
		{ServeScope, []string{"--metrics-namespaces", "acme,Not/One"}, nil, []string{"metrics-namespaces", "Not/One"}},
		{ServeScope, []string{"--metrics-namespaces", "acme,other"}, nil, []string{"metrics-namespaces", "other"}},
		{ServeScope, []string{"--metrics-namespaces", strings.Repeat("acme,", 51)}, nil,
			[]string{"metrics-namespaces", "51"}},
		{ClientScope, []string{"--namespace", "Not/One"}, nil, []string{"namespace", "Not/One"}},
		{ClientScope, []string{"--token-file", filepath.Join(dir, "none")}, nil, []string{"token-file"}},
	} {
		_, err := load(t, c.scope, c.args, c.env)
		if err == nil {
			t.Errorf("%q %v: got no error", c.args, c.env)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q %v: got %q, want it to name %q", c.args, c.env, err, part)
			}
		}
		if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: the error shows the password: %v", c.args, err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than one line: %q", c.args, err)
		}
	}
}

func TestLoopbackNeedsNoTokens(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "127.1.2.3:80", "[::1]:8420", "localhost:8420",
		"[::ffff:127.0.0.1]:1"} {
		if _, err := load(t, ServeScope, []string{"--listen", listen}, nil); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	if _, err := load(t, ServeScope, []string{"--listen", "0.0.0.0:8420", "--auth-tokens-file",
		writeFile(t, "tokens", "alice 0123456789abcdef\n")}, nil); err != nil {
		t.Errorf("with tokens: %v", err)
	}
}

// A client command does not fail because of the daemon's settings.
func TestClientScopeIgnoresTheDaemonsSettings(t *testing.T) {
	t.Parallel()
	o, err := load(t, ClientScope, nil, map[string]string{"RECURGENT_RUNNERS": "many", "RECURGENT_URL": "http://h:1",
		"HOME": ""})
	if err != nil || o.URL != "http://h:1" {
		t.Errorf("got %q, %v", o.URL, err)
	}
}

func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	text := "# a comment\nlisten: 127.0.0.1:9000\nfetch-allow:\n  - a.example\n  - '*.b.example'\nmodel:\nh2c: true\ncall-timeout: 5s\n"
	o, err := load(t, ServeScope, []string{"--config", writeFile(t, "config.yaml", text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Listen != "127.0.0.1:9000" || !reflect.DeepEqual(o.FetchAllow, []string{"a.example", "*.b.example"}) ||
		o.Model != "gpt-4.1" || !o.H2C || o.CallTimeout != 5*time.Second {
		t.Errorf("got %+v", o)
	}
	if _, err := load(t, ServeScope, []string{"--config", writeFile(t, "empty.yaml", "")}, nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// Headers are lists of lines, because their values may contain commas: repeated flags, a text with one per line, or a
// list.
func TestModelHeaders(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "headers", "Authorization: Basic a=b\n\n# more\ncf-aig-token=x:y\n")
	want := map[string][]string{"X-A": {"1, 2"}, "X-B": {"3"}, "Authorization": {"Basic a=b"}, "Cf-Aig-Token": {"x:y"}}
	for name, args := range map[string][]string{
		"flags":       {"--model-header", "X-A=1, 2", "--model-header", "x-b: 3"},
		"environment": nil,
		"file":        {"--config", writeFile(t, "config.yaml", "model-header:\n  - X-A=1, 2\n  - 'x-b: 3'\n")},
	} {
		env := map[string]string{"RECURGENT_MODEL_HEADERS_FILE": file}
		if args == nil {
			env["RECURGENT_MODEL_HEADER"] = "X-A=1, 2\nX-B=3\n"
		}
		o, err := load(t, ServeScope, args, env)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := map[string][]string(o.ProviderOptions().OpenAI.Header); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\n"))
	f.Add([]byte("fetch-allow: [a, b]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig("config.yaml", data)
		if err != nil {
			return
		}
		for _, s := range Settings() {
			if text, ok := c.values[s.Name]; ok {
				o := defaultOptions()
				_ = s.set(&o, text)
			}
		}
	})
}

// An invalid trace setting ends the start with one line. A setting that disables traces is accepted.
func TestTraceSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		flag Options
		on   bool
		bad  string
	}{
		{},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "http/protobuf"}, on: true},
		{flag: Options{OTLPEndpoint: "http://c:4317", OTLPProtocol: "grpc"}, on: true},
		{flag: Options{OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/x"}, on: true},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, bad: "OTEL_TRACES_EXPORTER"},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "http/json"}, bad: "otlp-protocol"},
		{flag: Options{OTLPEndpoint: "c:4318", OTLPProtocol: "grpc"}, bad: "otlp-endpoint"},
		{flag: Options{OTLPProtocol: "grpc"}, env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "nowhere"},
			bad: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
	} {
		o := c.flag
		err := o.resolveTraces(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		on := o.Traces != nil
		if on != c.on || (err != nil) != (c.bad != "") || err != nil && !strings.HasPrefix(err.Error(), c.bad) {
			t.Errorf("%+v, %v: on %v, %v", c.flag.OTLPEndpoint, c.env, on, err)
		}
	}
	var stderr bytes.Buffer
	env := environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"})
	code := Main(Shell{Stdout: io.Discard, Stderr: &stderr, Env: env}, []string{"serve", "--listen", "127.0.0.1:0"})
	if code != ExitUsage || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "pigeon") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
