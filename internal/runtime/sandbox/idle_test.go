package sandbox

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// idle returns a runner without a process.
func idle(program, owner string, since int, held int64) *runner {
	return &runner{program: program, owner: agent.Owner{Name: owner}, idleSince: time.Unix(int64(since), 0), held: held}
}

// The evicted runner is the least recently used one among those of owners who hold at least the mean.
func TestEvict(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []*runner
		want []string
	}{
		{"none", nil, nil},
		{"one owner: by age", []*runner{idle("b", "x", 2, 5), idle("a", "x", 1, 5), idle("c", "x", 3, 5)},
			[]string{"b", "a", "c"}},
		{"owners alike: by age", []*runner{idle("b", "x", 2, 5), idle("a", "y", 1, 5), idle("c", "z", 3, 5)},
			[]string{"a", "b", "c"}},
		{"one owner's many are not another's loss", []*runner{idle("his", "y", 1, 5), idle("a", "x", 2, 5),
			idle("b", "x", 3, 5), idle("c", "x", 4, 5)},
			[]string{"a", "b", "his", "c"}},
		{"nor are one owner's large ones", []*runner{idle("his", "y", 1, 5), idle("large", "x", 2, 50)},
			[]string{"large", "his"}},
	} {
		w := newWarmSet()
		for _, r := range c.all {
			w.add(r)
		}
		for _, want := range c.want {
			if r := w.evict(); r == nil || r.program != want {
				t.Errorf("%s: %v, want %s", c.name, r, want)
			}
		}
		r := w.evict()
		if w.sweep(); r != nil || w.count != 0 || w.bytes != 0 || len(w.byKey)+len(w.byOwner) != 0 {
			t.Errorf("%s: something is left: %+v", c.name, w)
		}
	}
}

// After any sequence of additions and removals, the set has the right sums and finds runners by key, the most recently
// used first.
func TestWarmSetCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w, model := newWarmSet(), map[*runner]bool{}
	for step := range 5000 {
		program, owner := fmt.Sprint(rnd.IntN(5)), fmt.Sprint(rnd.IntN(4))
		switch rnd.IntN(4) {
		case 0, 1:
			r := idle(program, owner, step, rnd.Int64N(100))
			w.add(r)
			model[r] = true
		case 2:
			var want *runner
			for r := range model {
				if r.program == program && r.owner.Name == owner && (want == nil || r.idleSince.After(want.idleSince)) {
					want = r
				}
			}
			if got := w.take(warmKey{program, agent.Owner{Name: owner}}); got != want {
				t.Fatalf("step %d: took %v, want %v", step, got, want)
			}
			delete(model, want)
		case 3:
			for r := range w.all() {
				if rnd.IntN(3) == 0 {
					if !w.remove(r) || w.remove(r) {
						t.Fatalf("step %d: removed twice or never", step)
					}
					delete(model, r)
				}
			}
		}
		var bytes int64
		for r := range model {
			bytes += r.held
		}
		if w.count != len(model) || w.bytes != bytes {
			t.Fatalf("step %d: %d runners with %d bytes, want %d with %d", step, w.count, w.bytes, len(model), bytes)
		}
	}
}

// All idle runners together hold at most RunnerMemory, and the runner of an owner with one program stays.
func TestWarmRunnersKeepToTheirMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	if wire.RaceBuild {
		return // a process with the race detector holds much memory, in varying amounts
	}
	p := nativePool(t, func(o *Options) { o.Blank, o.RunnerMemory = 0, 16<<20 })
	call := func(owner string, i int) Timing {
		req := request("echo", i)
		req.Owner, req.Program.Checksum = agent.Owner{Name: owner}, fmt.Sprint("sha256:", i)
		res := p.Run(t.Context(), req, &fakeHost{})
		if got := said(res); got != fmt.Sprintf("value [%d]", i) {
			t.Fatalf("%s %d: %s", owner, i, got)
		}
		return res.Timing
	}
	call("modest", 0)
	for i := range 40 {
		call("greedy", i)
		if s := p.Stats(); s.WarmBytes > 16<<20 || s.Warm == 0 {
			t.Fatalf("after %d programs %d runners hold %d bytes", i, s.Warm, s.WarmBytes)
		}
	}
	if timing := call("modest", 0); timing.Gate != 0 {
		t.Errorf("the modest owner's runner was ended for the greedy one: %+v", p.Stats())
	}
	if s := p.Stats(); s.Killed["evicted"] == 0 {
		t.Errorf("nothing was evicted: %+v", s)
	}
}

// With enough RunnerMemory hundreds of programs stay warm, and so does one program for each of many owners. A warm call
// has nothing to compile. The number of started processes is less significant, because blank runners are started at any
// time.
func TestManyWarmPrograms(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.Blank, o.RunnerMemory = 0, 2<<30 })
	const programs = 24
	for round := range 2 {
		for i := range programs {
			req := request("echo", i)
			req.Owner, req.Program.Checksum = agent.Owner{Name: fmt.Sprint("owner", i%3)}, fmt.Sprint("sha256:", i)
			res := p.Run(t.Context(), req, &fakeHost{})
			if got := said(res); got != fmt.Sprintf("value [%d]", i) {
				t.Fatalf("program %d: %s", i, got)
			}
			if warm := res.Timing.Gate == 0; warm != (round == 1) {
				t.Errorf("round %d, program %d: warm is %t: %+v", round, i, warm, p.Stats())
			}
		}
	}
}

// More blank runners are kept ready if many are taken, unless the idle ones already hold more than half of
// RunnerMemory.
func TestSpareRunners(t *testing.T) {
	p := &Pool{opts: Options{Blank: 2, RunnerMemory: 1000}, warm: newWarmSet()}
	for _, c := range []struct {
		taken, rate, want int
		held              int64
	}{{0, 0, 2, 0}, {15, 0, 2, 0}, {16, 0, 3, 0}, {0, 64, 6, 0}, {100000, 0, 18, 0}, {64, 64, 6, 500},
		{64, 64, 2, 501}} {
		p.taken, p.rate, p.blank = c.taken, c.rate, []*runner{{held: c.held}}
		if got := p.spare(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
