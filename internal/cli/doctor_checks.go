package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
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
		return finding{Check: "settings", Result: checkFail, Detail: err.Error(), Fix: "name another --config"}
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
		return finding{Check: "data", Result: checkFail, Detail: err.Error(), Fix: "name another --data-dir"}
	}
	began := time.Now()
	if err := tryWriting(o.DataDir); err != nil {
		return finding{Check: "data", Result: checkFail, Detail: err.Error(),
			Fix: "name another --data-dir, or make room"}
	}
	f.Detail += fmt.Sprintf("; a synced write took %.1f ms", float64(time.Since(began).Microseconds())/1000)
	aside, err := filepath.Glob(filepath.Join(o.DataDir, "tools", "*", "*.corrupt-*"))
	if top, err2 := filepath.Glob(filepath.Join(o.DataDir, "tools", "*.corrupt-*")); err == nil && err2 == nil {
		aside = append(aside, top...)
	}
	if len(aside) > 0 {
		f.Result, f.Detail = checkWarn, f.Detail+"; moved aside as damaged: "+text.Plural(len(aside), "file")
		f.Fix = "stop the daemon; recurgentd store verify lists them"
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
			" is taken, by a daemon that answers /healthz",
			Fix: "a second daemon needs another --listen and another --data-dir"}
	}
	return finding{Check: "port", Result: checkFail, Detail: err.Error(),
		Fix: "end what listens there, or name another --listen; 127.0.0.1:0 takes a free port"}
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
		f.Fix = "allow it on this machine (docs/security.md), or ask for less with --sandbox-require"
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
			f.Fix = "the directory is that of --data-dir"
		}
	}
	switch {
	case o.Engine == report.EngineYaegi:
		f.Result, f.Detail, f.Fix = checkWarn, "programs are not compiled: only plain ones run", "take --engine auto"
	case why != "" && o.Engine == report.EngineAuto:
		f.Result, f.Detail = checkWarn, "programs are not compiled, only plain ones run: "+why
	case why != "":
		f.Result, f.Detail = checkFail, "programs cannot be compiled: "+why
	}
	if why != "" && f.Fix == "" {
		f.Fix = "take a binary of make build or of a release, which carries the compiler, or put the Go release " +
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
		return finding{Check: "clock", Result: checkFail, Detail: "the clock says " + text, Fix: "set the clock"}
	case newest.Sub(now) > time.Minute:
		return finding{Check: "clock", Result: checkWarn,
			Detail: fmt.Sprintf("the clock says %s, but the data directory was written at %s", text,
				newest.UTC().Format(time.RFC3339)),
			Fix: "set the clock; until then records are out of order and windows are too long"}
	}
	return finding{Check: "clock", Result: checkOK, Detail: text}
}
