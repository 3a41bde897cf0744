package sandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// BenchmarkColdStages measures a cold call without the daemon around it: start, confinement, gate and compilation,
// first run. In addition to the time it reports the runner's processor time for each stage, in microseconds.
func BenchmarkColdStages(b *testing.B) {
	for _, source := range []string{"plain", "sorting"} {
		for from, h := range map[string]hooks{"carried": {program: buildRunner(b, "one"), build: "one"},
			"itself": {args: []string{wire.RunnerArg}}} {
			b.Run(source+"/"+from, func(b *testing.B) {
				benchmarkStages(b, testPool(b, func(o *Options) { o.Blank, o.Dir = 0, b.TempDir() }, h),
					coldPrograms[source])
			})
		}
	}
}

var coldPrograms = map[string]string{
	"plain": program("a, _ := call.Arg(0, \"a\").(float64)\n\treturn a + 1, nil"),
	"sorting": `package tool

import (
	"recurgent"
	"sort"
	"strings"
)

func Run(call *recurgent.Call) (any, error) {
	counts := map[string]int{}
	for _, w := range strings.Fields(strings.ToLower("The quick brown fox jumps over the lazy dog. The end.")) {
		counts[strings.Trim(w, ".,;!?")]++
	}
	keys := []string{}
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return counts[keys[i]] > counts[keys[j]] || counts[keys[i]] == counts[keys[j]] && keys[i] < keys[j] })
	out := []any{}
	for _, k := range keys {
		out = append(out, map[string]any{"word": k, "count": counts[k]})
	}
	return out, nil
}
`}

func benchmarkStages(b *testing.B, p *Pool, source string) {
	var cpu [3]time.Duration
	req, ctx := request(source, 1), b.Context()
	for b.Loop() {
		r, f := p.spawn(ctx, p.image)
		if f != nil {
			b.Fatal(f)
		}
		started := r.cpuTime()
		if f := r.load(ctx, req.Program, req.Owner, time.Now().Add(loadTimeout)); f != nil {
			b.Fatal(f)
		}
		loaded := r.cpuTime()
		if res := r.runOnce(ctx, &req, time.Now().Add(loadTimeout),
			&exchange{pool: p, req: req, h: &fakeHost{}}); res.Failure != nil {
			b.Fatal(res.Failure)
		}
		ran := r.cpuTime()
		cpu[0], cpu[1], cpu[2] = cpu[0]+started, cpu[1]+loaded-started, cpu[2]+ran-loaded
		r.bury("bench")
	}
	for i, stage := range []string{"start", "load", "run"} {
		b.ReportMetric(float64(cpu[i].Microseconds())/float64(b.N), fmt.Sprintf("cpu-us/%s", stage))
	}
}
