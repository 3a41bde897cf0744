package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// TestMain lets the test binary serve as the runner of the daemons that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	os.Exit(m.Run())
}

// options returns options for a daemon with the demo recording and its own directory.
func options(t *testing.T) app.Options {
	o := app.DefaultOptions()
	o.Listen, o.DataDir, o.Provider, o.Runners = "127.0.0.1:0", t.TempDir(), "replay", 1
	compiler, err := apptest.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	o.CompilerDir, o.GoCache = compiler[0], compiler[1]
	return o
}

func start(t *testing.T, o app.Options) *app.App {
	t.Helper()
	a, err := app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	t.Cleanup(func() { stop(t, a) })
	return a
}

func stop(t *testing.T, a *app.App) {
	t.Helper()
	// generous: slow machines
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// post sends v and returns the reply. The test fails unless it is a success.
func post(t *testing.T, a *app.App, path string, v any) map[string]any {
	t.Helper()
	return postBy(t, http.DefaultClient, a, path, v)
}

// postBy is post with that client.
func postBy(t *testing.T, client *http.Client, a *app.App, path string, v any) map[string]any {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Post(a.URL()+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var reply map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("POST %s: %d, %v: %v", path, resp.StatusCode, err, reply)
	}
	return reply
}

// Two daemons in one process have their own ports, sessions, registries and runners. Stopping one does not affect the
// other.
func TestTwoInOneProcess(t *testing.T) {
	t.Parallel()
	first, second := start(t, options(t)), start(t, options(t))
	if first.Addr() == second.Addr() {
		t.Fatalf("both listen on %s", first.Addr())
	}
	sessions := map[*app.App]string{}
	add := func(a *app.App) any {
		return post(t, a, "/v1/sessions/"+sessions[a]+"/calls", map[string]any{"method": "add", "args": []int{2, 3},
			"kwargs": map[string]any{}})["outcome"].(map[string]any)["value"]
	}
	for _, a := range []*app.App{first, second} {
		sessions[a] = post(t, a, "/v1/sessions", map[string]any{"role": "calculator"})["id"].(string)
		if got := add(a); got != 5.0 {
			t.Errorf("%s: 2 + 3 = %v", a.URL(), got)
		}
	}
	stop(t, first)
	if got := add(second); got != 5.0 {
		t.Errorf("after the end of the other: 2 + 3 = %v", got)
	}
	client := &http.Client{Timeout: time.Minute}
	// another process, which was given the port
	if resp, err := client.Get(first.URL() + "/v1/sessions/" + sessions[first]); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("a stopped daemon answers")
		}
	}
}

// A stopped daemon releases its port and data directory for the next one, repeatedly.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Listen = apptest.Address(t)
	for range 3 {
		a, err := newOn(t, o)
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		stop(t, a)
		stop(t, a) // a second Stop is allowed
		select {
		case err := <-a.Failed():
			t.Errorf("the server failed: %v", err)
		default:
		}
	}
}

// A daemon that was never started can be stopped.
func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	o := options(t)
	a, err := app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, a)
	stop(t, start(t, o))
}

// released waits until the port is free. A child process that is being started holds inherited descriptors until it
// executes its program.
func released(t *testing.T, address string) {
	t.Helper()
	var l net.Listener
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); goruntime.Gosched() {
		if l, err = net.Listen("tcp", address); err == nil {
			l.Close()
			return
		}
	}
	t.Errorf("the port was not given back: %v", err)
}

// newOn is app.New on a port that was in use a moment ago. It retries while a process that is being started holds the
// port.
func newOn(t *testing.T, o app.Options) (*app.App, error) {
	t.Helper()
	a, err := app.New(t.Context(), o)
	for range 100 {
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
		released(t, o.Listen)
		a, err = app.New(t.Context(), o)
	}
	return a, err
}

// If New fails, it releases port and data directory. The test must not run in parallel: child processes of other tests
// would hold its port.
func TestNewUndoesWhatItMade(t *testing.T) {
	o := options(t)
	holder := start(t, o)
	taken := options(t)
	taken.Listen = holder.Addr()
	if _, err := app.New(t.Context(), taken); err == nil ||
		!strings.Contains(err.Error(), "stop the process that uses it") {
		t.Errorf("a taken port: %v", err)
	}
	free := apptest.Address(t)
	held := o
	held.Listen = free
	if _, err := newOn(t, held); err == nil || !strings.Contains(err.Error(), "in use by another recurgentd") {
		t.Errorf("a held data directory: %v", err)
	}
	released(t, free)
	stop(t, holder)
	broken := options(t)
	broken.DataDir = o.DataDir
	broken.Provider, broken.Recording = "replay", o.DataDir+"/broken.jsonl"
	if err := os.WriteFile(broken.Recording, []byte("no recording\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(t.Context(), broken); err == nil {
		t.Error("a damaged recording was taken")
	}
	start(t, o)
}

// An invalid option is refused by name, before anything is created.
func TestBadOptionsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(o *app.Options)
	}{
		{"data-dir", func(o *app.Options) { o.DataDir = "" }},
		{"listen", func(o *app.Options) { o.Listen = "8420" }},
		{"listen", func(o *app.Options) { o.Listen = "0.0.0.0:0" }},
		{"allowed-hosts", func(o *app.Options) { o.AllowedHosts = []string{""} }},
		{"public-url", func(o *app.Options) { o.PublicURL = "tools.example.com" }},
		{"cors-origins", func(o *app.Options) { o.CORSOrigins = []string{"*"} }},
		{"provider", func(o *app.Options) { o.Provider = "" }},
		{"provider", func(o *app.Options) { o.Provider = "openai" }},
		{"model", func(o *app.Options) { o.Provider, o.OpenAIKey, o.Model = "openai", "k", " " }},
		{"openai-api-key", func(o *app.Options) { o.OpenAIKey = "a b" }},
		{"openai-base-url", func(o *app.Options) { o.OpenAIBaseURL = "ftp://x" }},
		{"recording", func(o *app.Options) { o.Recording = "/nowhere" }},
		{"runners", func(o *app.Options) { o.Runners = 0 }},
		{"call-timeout", func(o *app.Options) { o.CallTimeout = 0 }},
		{"provider-timeout", func(o *app.Options) { o.ProviderTimeout = 2 * time.Hour }},
		{"fetch-allow", func(o *app.Options) { o.FetchAllow = []string{"*"} }},
		{"sandbox-require", func(o *app.Options) { o.SandboxRequire = "none" }},
		{"engine", func(o *app.Options) { o.Engine = "interp" }},
		{"isolation", func(o *app.Options) { o.Isolation = "" }},
	} {
		o := options(t)
		c.change(&o)
		_, err := app.New(t.Context(), o)
		var bad *app.OptionError
		if !errors.As(err, &bad) || bad.Name != c.name || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("got %v, want an OptionError of %s", err, c.name)
		}
	}
}
