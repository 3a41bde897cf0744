package tier

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A rig is a tier over scripted programs: the source of a program is the name of its function.
type rig struct {
	*Tier
	t    *testing.T
	dir  string
	box  *runtimetest.Box
	of   agent.Namespace          // whose programs are called
	left map[agent.Namespace]bool // namespaces that are gone
	gone map[string]bool          // sources whose generation is not kept
	old  map[string]bool          // sources whose generation is kept and not the current one

	proofs []Sample
	build  func(ctx context.Context, source string) error
	other  bool // it compiles to other bytes

	mu     sync.Mutex
	builds []string // guarded by mu
}

func (r *rig) Build(ctx context.Context, source string) (path, digest string, err error) {
	r.mu.Lock()
	r.builds = append(r.builds, source)
	r.mu.Unlock()
	if r.build != nil {
		if err := r.build(ctx, source); err != nil {
			return "", "", err
		}
	}
	path = filepath.Join(r.dir, "exe-"+source)
	data, err := os.ReadFile(path)
	if err != nil { // else it is as in a cache
		data = []byte("compiled " + source)
		if r.other {
			data = append(data, " otherwise"...)
		}
		err = os.WriteFile(path, data, 0o755)
	}
	digest, _ = sandbox.Sum(bytes.NewReader(data)) // of memory
	return path, digest, err
}

func (r *rig) Generation(_ context.Context, k Key) (*agent.Generation, bool, error) {
	source := strings.TrimPrefix(k.Checksum, "sum of ")
	if r.gone[source] {
		return nil, false, nil
	}
	return &agent.Generation{ID: "gen-1", Code: source, CodeChecksum: k.Checksum}, !r.old[source], nil
}

func (r *rig) Proofs(_ context.Context, _ Key, yield func(Sample) bool) error {
	for _, s := range r.proofs {
		if !yield(s) {
			break
		}
	}
	return nil
}

func (r *rig) Rules() *mask.Rules { return mask.Compile([]string{"password"}) }

// programs answer with their argument; compiled, some do otherwise.
func programs() map[string]runtimetest.Run {
	echo := func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
		return sandbox.Result{Value: slices.Clone(q.Args[0])}
	}
	compiled := func(then runtimetest.Run) runtimetest.Run {
		return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			if q.Native == nil {
				return echo(ctx, q, h)
			}
			res := then(ctx, q, h)
			if res.Tier == "" {
				res.Tier = sandbox.TierNative
			}
			return res
		}
	}
	count := 0
	return map[string]runtimetest.Run{
		"same":   compiled(echo),
		"other":  compiled(runtimetest.Returns(`{"password":"seen","n":1}`)),
		"raises": compiled(runtimetest.Raises("low_utility", "no")),
		"breaks": compiled(func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			res := echo(ctx, q, h)
			res.Tier, res.Native = sandbox.TierEngine, &sandbox.NativeFault{Kind: sandbox.NativeBroken, Message: "died"}
			return res
		}),
		"changes": compiled(func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			res := echo(ctx, q, h)
			res.Context = &agent.ContextChange{Delete: []string{"k"}}
			return res
		}),
		"asks": compiled(func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			res := echo(ctx, q, h)
			res.Effects.Asks = 1
			return res
		}),
		"late": compiled(func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			if string(q.Args[0]) == "13" {
				return runtimetest.Value("0")
			}
			return echo(ctx, q, h)
		}),
		"random": func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
			count++
			return sandbox.Result{Value: agent.Encoded(count)}
		},
	}
}

// keyIn is the key of an installation in the directory.
func keyIn(t *testing.T, dir string) *seal.Key {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := beneath.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	key, err := seal.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRig(t *testing.T, dir string, change func(*rig, *Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, box: &runtimetest.Box{Programs: programs()}, of: agent.DefaultNamespace, left: map[agent.Namespace]bool{}, gone: map[string]bool{}, old: map[string]bool{}}
	o := Options{Builder: r, Identity: "go1 one", Dir: filepath.Join(dir, "native"), Key: keyIn(t, filepath.Join(dir, "native")), Box: r.box, Metrics: telemetry.New(telemetry.NewRegistry(), telemetry.Build{}), Logger: zerolog.Nop()}
	if change != nil {
		change(r, &o)
	}
	var err error
	if r.Tier, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.Begin(func(_ context.Context, of agent.Namespace) (Source, func(), error) {
		if r.left[of] {
			return nil, nil, nil
		}
		return r, func() {}, nil
	})
	t.Cleanup(r.Stop)
	return r
}

var hot = agent.NativePolicy{MinCalls: 3, MinCPUMs: 3}

func (r *rig) key(source string) Key {
	return Key{r.of, "role", "method", "sum of " + source}
}

func (r *rig) program(source string) *Program { return r.Program(r.key(source)) }

// call runs the program as a call does, for a millisecond.
func (r *rig) call(source, arg string) sandbox.Result {
	p := r.program(source)
	q := sandbox.Request{Program: sandbox.Program{Source: source, Checksum: "sum of " + source}, Owner: agent.Owner{Name: "local"}, Args: []json.RawMessage{json.RawMessage(arg)}, Native: p.Executable()}
	res := r.box.Run(context.Background(), q, nil)
	res.Facts, res.Timing.Run = &report.Facts{Imports: []string{source}}, time.Millisecond
	if p.Ran(&res, hot) {
		p.Offer(Sample{Origin: "call " + arg, Request: q, Result: res})
	}
	return res
}

// calls makes n calls and lets the worker follow each.
func (r *rig) calls(source string, n int) {
	for i := range n {
		r.call(source, string(agent.Encoded(i)))
		synctest.Wait()
	}
}

func (r *rig) want(source, state string) {
	r.t.Helper()
	if got := r.View(r.key(source)); got.State != state {
		r.t.Errorf("%s is %+v, want %s", source, got, state)
	}
}
