package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/access/oidc"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// checkSettings reports which settings are not at their defaults, and their sources. It never reports values, which may
// be secret.
func checkSettings(flags *pflag.FlagSet, env func(string) (string, bool), err error) finding {
	if err != nil {
		return finding{Check: "settings", Result: checkFail, Detail: err.Error(),
			Fix: "correct that setting; docs/configuration.md has them all"}
	}
	file, err := configFile(flags, env)
	if err != nil {
		return finding{Check: "settings", Result: checkFail, Detail: err.Error(), Fix: "set another --config"}
	}
	var given []string
	for _, s := range Settings() {
		if _, source, ok := lookup(s, file, flags, env); ok && s.Scope == ServeScope {
			given = append(given, s.Name+" from "+source)
		}
	}
	f := finding{Check: "settings", Result: checkOK, Detail: "valid; all at their defaults"}
	if len(given) > 0 {
		f.Detail = "valid; " + strings.Join(given, ", ") + "; the others at their defaults"
	}
	return f
}

// checkDataDir writes, syncs and renames a file in the directory, as the store does. It does not try the lock, which a
// running daemon may hold.
func checkDataDir(o Options) finding {
	f := finding{Check: "data", Result: checkOK, Detail: o.DataDir + " can be written"}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return finding{Check: "data", Result: checkFail, Detail: err.Error(), Fix: "set another --data-dir"}
	}
	began := time.Now()
	if err := tryWriting(o.DataDir); err != nil {
		return finding{Check: "data", Result: checkFail, Detail: err.Error(),
			Fix: "free disk space, or set another --data-dir"}
	}
	f.Detail += fmt.Sprintf("; a synced write took %.1f ms", float64(time.Since(began).Microseconds())/1000)
	aside, err := filepath.Glob(filepath.Join(o.DataDir, "tools", "*", "*.corrupt-*"))
	if top, err2 := filepath.Glob(filepath.Join(o.DataDir, "tools", "*.corrupt-*")); err == nil && err2 == nil {
		aside = append(aside, top...)
	}
	if len(aside) > 0 {
		f.Result, f.Detail = checkWarn, f.Detail+"; damaged and moved aside: "+text.Plural(len(aside), "file")
		f.Fix = "stop the daemon and list them with recurgentd store verify"
	}
	return f
}

// tryWriting writes, syncs, renames and removes a file in dir.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	name := file.Name()
	_, err = file.WriteString("doctor")
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		if err = os.Rename(name, name+".renamed"); err == nil {
			name += ".renamed"
		}
	}
	return errors.Join(err, os.Remove(name))
}

// checkPort tries to listen at the address. If that fails, it checks whether a recurgentd answers there.
func checkPort(ctx context.Context, o Options) finding {
	l, err := net.Listen("tcp", o.Listen)
	if err == nil {
		_ = l.Close() // nobody has connected yet
		return finding{Check: "port", Result: checkOK, Detail: o.Listen + " is free"}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	scheme := "http://"
	if o.TLSCert != "" {
		scheme = "https://"
	}
	if data, err := client.New(scheme+o.Listen, "", nil).Do(ctx, http.MethodGet, "/healthz",
		nil); err == nil && len(data) > 0 {
		return finding{Check: "port", Result: checkWarn, Detail: o.Listen +
			" is in use by a daemon that answers /healthz",
			Fix: "a second daemon needs another --listen and another --data-dir"}
	}
	return finding{Check: "port", Result: checkFail, Detail: err.Error(),
		Fix: "stop the process that listens there, or set another --listen; 127.0.0.1:0 picks a free port"}
}

// checkSandbox starts a canary runner to observe the confinement. A level below the required one is a failure, as in
// serve.
func checkSandbox(o Options) finding {
	so := sandbox.DefaultOptions()
	// Accept any level first, to report what is missing.
	so.Require, so.Blank = string(sandbox.LevelProcess), 0
	box, err := sandbox.New(so)
	if err != nil {
		return finding{Check: "sandbox", Result: checkFail, Detail: err.Error(), Fix: "see docs/security.md"}
	}
	status := box.Status()
	_ = box.Close() // it ran no program
	f := finding{Check: "sandbox", Result: checkOK, Detail: "level " + string(status.Level) + ", nothing is missing",
		Status: &status}
	if status.Level == sandbox.LevelFull {
		return f
	}
	f.Result, f.Detail = checkWarn, "level "+string(status.Level)+"; missing: "+missingLayers(status)
	f.Fix = "docs/security.md says what each level promises and what each layer needs"
	so.Require = o.SandboxRequire
	if box, err := sandbox.New(so); err != nil {
		f.Result, f.Detail = checkFail, text.OneLine(err.Error())+"; missing: "+missingLayers(status)
		f.Fix = "allow it on this machine (docs/security.md), or set --sandbox-require to a lower level"
	} else {
		_ = box.Close()
	}
	return f
}

// checkNative reports whether programs are compiled and with which compiler, or what is missing for that.
func checkNative(o Options) finding {
	so := sandbox.DefaultOptions()
	so.Require, so.Blank, so.Native = string(sandbox.LevelProcess), 0, true
	status := sandbox.Status{Level: sandbox.LevelProcess}
	if box, err := sandbox.New(so); err == nil {
		status = box.Status()
		_ = box.Close() // it ran no program
	}
	found, why := app.FindCompiler(&status)
	f := finding{Check: "native", Result: checkOK, Detail: "programs are compiled with " + found.Version +
		", which is " + found.From()}
	if why == "" {
		if err := native.TryDir(o.DataDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			why = err.Error()
			f.Fix = "--data-dir sets the directory"
		}
	}
	switch {
	case o.Engine == report.EngineYaegi:
		f.Result, f.Detail, f.Fix = checkWarn, "programs are not compiled: only plain ones run", "set --engine auto"
	case why != "" && o.Engine == report.EngineAuto:
		f.Result, f.Detail = checkWarn, "programs are not compiled, only plain ones run: "+why
	case why != "":
		f.Result, f.Detail = checkFail, "programs cannot be compiled: "+why
	}
	if why != "" && f.Fix == "" {
		f.Fix = "use a binary from make build or from a release, which contains the compiler, or put the Go release " +
			goruntime.Version() + " on PATH"
	}
	return f
}

// missingLayers names the layers of the confinement that are off.
func missingLayers(s sandbox.Status) string {
	var missing []string
	for _, layer := range sortedKeys(s.Layers) {
		if !strings.HasPrefix(s.Layers[layer], "on") {
			missing = append(missing, layer)
		}
	}
	if len(missing) == 0 {
		return "none, but not every probe was denied"
	}
	return strings.Join(missing, ", ")
}

// newestFile returns the modification time of the newest of up to 10,000 files in the directory, or the zero time if
// there are none.
func newestFile(dir string) time.Time {
	var newest time.Time
	files := 0
	// Unreadable files are skipped.
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if files++; files > 10_000 {
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}

// checkClock rejects a time before this program was written, and warns if the clock is behind the data: records,
// windows and retention would be wrong.
func checkClock(now, newest time.Time) finding {
	text := now.UTC().Format(time.RFC3339)
	switch {
	case now.Year() < 2026:
		return finding{Check: "clock", Result: checkFail, Detail: "the clock shows " + text, Fix: "set the clock"}
	case newest.Sub(now) > time.Minute:
		return finding{Check: "clock", Result: checkWarn,
			Detail: fmt.Sprintf("the clock shows %s, but the data directory was written at %s", text,
				newest.UTC().Format(time.RFC3339)),
			Fix: "set the clock; until then records are out of order and windows are too long"}
	}
	return finding{Check: "clock", Result: checkOK, Detail: text}
}

// databaseTimeout bounds an examination of the database.
const databaseTimeout = 10 * time.Second

// checkDatabase examines the database that serve would use, without changing it; found is false if there is none. The
// finding states which acknowledged data may be lost in the worst case.
func checkDatabase(ctx context.Context, sh Shell, flags *pflag.FlagSet) (f finding, found bool) {
	f = finding{Check: "database", Result: checkFail, Fix: "see --store, RECURGENT_STORE and --store-file"}
	var text [2]string
	for i, name := range []string{"store", "store-file"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed {
			text[i] = flag.Value.String()
		}
	}
	address, shown, err := databaseFlags{&text[0], &text[1]}.named(sh, "")
	if err == nil && address == "" {
		return f, false
	}
	if err != nil {
		f.Detail = err.Error()
		return f, true
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	x, err := postgres.Examine(ctx, postgres.DefaultOptions(address))
	switch {
	case err != nil:
		f.Detail, f.Fix = fmt.Sprintf("%s: %s", shown, err),
			"check that the server runs, that its address and user are right, and that it lets this machine in"
	case len(x.Problems) > 0:
		f.Detail, f.Fix = fmt.Sprintf("%s, PostgreSQL %s: %s", shown, x.Server, strings.Join(x.Problems, "; ")),
			"fix that first: recurgentd serve would not start, or not work"
	default:
		f.Result, f.Fix, f.Detail = checkOK, "", fmt.Sprintf("%s, PostgreSQL %s, schema version %d of %d; %s", shown,
			x.Server, x.Form, x.Newest, x.Promise)
		if !x.Durable {
			f.Result, f.Fix = checkWarn,
				"to lose no acknowledged commit, add a synchronous standby: set synchronous_standby_names, "+
					"and synchronous_commit = on"
		}
	}
	return f, true
}

// checkAccess reports who may use the daemon, whether tokens are sent without TLS, when certificates expire, and
// whether the issuer's keys can be fetched.
func checkAccess(ctx context.Context, o Options, now time.Time) finding {
	f := finding{Check: "access", Result: checkOK, Detail: "no tokens: everybody on this machine may do everything"}
	warn := func(detail, fix string) {
		f.Detail += "; " + detail
		if f.Result == checkOK {
			f.Result, f.Fix = checkWarn, fix
		}
	}
	switch {
	case o.AuthTokensFile != "" && o.OIDCIssuer != "":
		f.Detail = "tokens of " + o.AuthTokensFile + " and of " + o.OIDCIssuer
	case o.OIDCIssuer != "":
		f.Detail = "tokens of " + o.OIDCIssuer
	case o.AuthTokensFile != "":
		f.Detail = "tokens of " + o.AuthTokensFile
	}
	ends := func(what, file string, end time.Time) {
		at := end.UTC().Format(time.RFC3339)
		switch left := end.Sub(now); {
		case left <= 0:
			f.Result, f.Fix = checkFail, "put a new certificate in the place of "+file
			f.Detail += "; " + what + " ended at " + at
		case left < app.ExpiresSoon:
			warn(what+" ends at "+at, "put a new certificate in the place of "+file+
				"; the daemon reads it without a restart")
		default:
			f.Detail += "; " + what + " ends at " + at
		}
	}
	if end, ok := o.ClusterCertificateEnds(); ok {
		ends("the certificate among replicas", o.ClusterCert, end)
	}
	if end, ok := o.CertificateEnds(); ok {
		ends("the certificate", o.TLSCert, end)
	} else if !o.Local() {
		warn("they travel without TLS", "set --tls-cert and --tls-key, or put a proxy with TLS in front")
	}
	if o.OIDCIssuer == "" {
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	keys, err := oidc.Probe(ctx, o.OIDCIssuer)
	switch {
	case err != nil:
		warn("the issuer's keys cannot be fetched: "+err.Error(),
			"check --oidc-issuer: OIDC discovery must answer at its /.well-known/openid-configuration")
	case o.OIDCNamespaceClaim == "":
		warn("its tokens may do nothing", "set --oidc-namespace-claim")
	default:
		f.Detail += "; the issuer has " + text.Plural(keys, "key")
	}
	return f
}

// checkConnections checks the key file and reports connections whose secrets are unavailable. It reads the database, or
// the store's files, which a running daemon may have open.
func checkConnections(ctx context.Context, o Options) finding {
	f := finding{Check: "secrets", Result: checkOK, Detail: "no connections"}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	all, problem, err := app.StoredConnections(ctx, o.Options)
	if err != nil && o.Database() {
		return finding{Check: "secrets", Result: checkWarn, Detail: "cannot read the connections from the database: " +
			err.Error(), Fix: "see the finding about the database"}
	}
	if err != nil {
		return finding{Check: "secrets", Result: checkFail, Detail: err.Error(),
			Fix: "recurgentd store verify says what is damaged"}
	}
	if key, err := os.Stat(o.SecretsKey()); err == nil && key.Mode()&fs.FileMode(0o077) != 0 {
		return finding{Check: "secrets", Result: checkWarn, Detail: o.SecretsKey() +
			" can be read by other users of this machine", Fix: "chmod 0600 " + o.SecretsKey()}
	}
	if len(all) == 0 {
		return f
	}
	var unusable []string
	for i := range all {
		if all[i].Auth.Env != "" {
			continue // the daemon's environment may differ from this one
		}
		if why := problem(&all[i]); why != "" {
			unusable = append(unusable, all[i].Name+": "+why)
		}
	}
	if f.Detail = text.Plural(len(all), "connection") + ", all secrets are available"; len(unusable) > 0 {
		f.Result, f.Detail = checkWarn, fmt.Sprintf("%d of %s cannot be used: %s", len(unusable),
			text.Plural(len(all), "connection"), strings.Join(unusable, "; "))
		f.Fix = "see docs/connections.md; recurgentd connections set NAME gives a new secret"
	}
	return f
}

// A modelStep is one step of the check of the model.
type modelStep struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// checkModel lets the model write a small program by the same request as calls. A recording is only opened.
func checkModel(ctx context.Context, o Options) finding {
	p, err := provider.New(o.ProviderOptions())
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: err.Error(),
			Fix: "see --provider, --recording and OPENAI_BASE_URL"}
	}
	if c, ok := p.(io.Closer); ok {
		defer c.Close() // nothing was written
	}
	server := provider.ServerOf(p)
	if server == nil {
		return finding{Check: "model", Result: checkWarn,
			Detail: "a recording replaces the model; it answers recorded methods only",
			Fix:    "set OPENAI_API_KEY or OPENAI_BASE_URL to forge other methods"}
	}
	box, why, remove, err := openGate(o)
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: "no program can be checked here: " + err.Error(),
			Fix: "see docs/security.md"}
	}
	defer remove()
	c := app.CheckModel(ctx, server, o.FetchMax, box,
		provider.Request{Owner: agent.Owner{Namespace: agent.DefaultNamespace, Name: "doctor"}})
	f := modelFinding(server, c)
	if last := c.Steps[len(c.Steps)-1]; why != "" && last.Result == provider.StepFailed {
		f.Fix = "let programs be compiled (" + why + "), or set another --model; stored programs run without it"
	}
	return f
}

// Remedies for a model that does not answer, and for one that writes no program that the gate lets run.
const (
	modelFix = "check OPENAI_BASE_URL, OPENAI_API_KEY and --model (docs/models.md); stored programs run without it"
	coderFix = "set --model to a model that can write Go; stored programs run without it"
)

// modelFinding converts the check of the model to a finding.
func modelFinding(server *provider.OpenAI, c provider.Check) finding {
	f := finding{Check: "model", Result: checkOK, Detail: fmt.Sprintf("%s wrote a program in %s (%s)",
		server.Status().Model, c.Took.Round(time.Millisecond),
		text.Plural(c.Usage.PromptTokens+c.Usage.CompletionTokens, "token"))}
	for _, s := range c.Steps {
		f.Steps = append(f.Steps, modelStep{s.Name, s.Result, text.OneLine(s.Detail)})
		if s.Result == provider.StepWarn && f.Result == checkOK {
			f.Result, f.Fix = checkWarn, "docs/models.md says what each server needs"
		}
		if s.Result == provider.StepFailed {
			if f.Result, f.Fix = checkFail, modelFix; s.Name == provider.StepCompiles {
				f.Fix = coderFix
			}
			f.Detail = text.OneLine(s.Name + ": " + s.Detail)
		}
	}
	if errors.Is(c.Err, provider.ErrInvalidPayload) {
		f.Fix = coderFix
	}
	return f
}

// openGate opens what checks and compiles a program, in a temporary directory: in the data directory, where
// executables must be allowed anyway, or else in the system's. remove closes it and deletes the directory. Without a
// compiler, why is the reason.
func openGate(o Options) (box *sandbox.Pool, why string, remove func(), err error) {
	dir, err := os.MkdirTemp(o.DataDir, ".doctor-*")
	if err != nil {
		if dir, err = os.MkdirTemp("", "recurgent-doctor-"); err != nil {
			return nil, "", nil, err
		}
	}
	if box, why, err = app.OpenGate(o.Options, dir); err != nil {
		return nil, "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return box, why, func() {
		_ = box.Close() // it ran no program
		_ = os.RemoveAll(dir)
	}, nil
}

// stepLines returns a line for each step of the check.
func stepLines(colours text.Palette, steps []modelStep) []string {
	styles := map[string]string{provider.StepOK: text.Good, provider.StepWarn: text.Warn, provider.StepFailed: text.Bad,
		provider.StepUnknown: text.Faint}
	words := map[string]string{provider.StepOK: "ok", provider.StepWarn: "warn", provider.StepFailed: "fail",
		provider.StepUnknown: "-"}
	var lines []string
	for _, s := range steps {
		lines = append(lines, strings.TrimRight(strings.Repeat(" ", 17)+colours.Paint(styles[s.Result],
			text.Pad(words[s.Result], 4))+" "+text.Pad(s.Name, 8)+" "+text.Plain(s.Detail), " "))
	}
	return lines
}
