package sandbox

import (
	"context"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func BenchmarkWarm(b *testing.B) {
	p := nativePool(b, nil)
	req, h, ctx := request("echo", 1, "two"), &fakeHost{}, context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if r := p.Run(ctx, req, h); r.Failure != nil {
			b.Fatal(r.Failure)
		}
	}
}

func BenchmarkWarmParallel(b *testing.B) {
	p := nativePool(b, nil)
	req, h := request("echo", 1, "two"), &fakeHost{}
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r := p.Run(context.Background(), req, h); r.Failure != nil {
				b.Error(r.Failure)
				return
			}
		}
	})
}

func BenchmarkCold(b *testing.B) {
	p := nativePool(b, func(o *Options) { o.Isolation = IsolationCall })
	req, h, ctx := request("echo", 1, "two"), &fakeHost{}, context.Background()
	for b.Loop() {
		if r := p.Run(ctx, req, h); r.Failure != nil {
			b.Fatal(r.Failure)
		}
	}
}

func BenchmarkSpawn(b *testing.B) {
	p := nativePool(b, func(o *Options) { o.Blank = 0 })
	for b.Loop() {
		r, f := p.spawn(context.Background(), p.image)
		if f != nil {
			b.Fatal(f)
		}
		r.kill("bench")
	}
}

// BenchmarkFloor measures the pipe alone: one frame there and one back, between two Go processes.
func BenchmarkFloor(b *testing.B) {
	p := scriptPool(b, "run.pong", nil)
	r, f := p.spawn(context.Background(), p.image)
	if f != nil {
		b.Fatal(f)
	}
	defer r.kill("bench")
	req := request("echo", 1, "two")
	(&wire.Run{Nonce: 1, Now: req.Now, Seed: req.Seed, Role: req.Role, Method: req.Method, CallID: req.CallID,
		Args: req.Args}).Put(&r.wr)
	frame := r.wr.Finish()
	r.setDeadline(time.Time{})
	for b.Loop() {
		if _, err := r.in.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.rd.Next(1 << 20); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWarmProgram measures a warm call of a real program.
func BenchmarkWarmProgram(b *testing.B) {
	p := compilePool(b, nil)
	req := request(program("a, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"), 2, 3)
	h, ctx := &fakeHost{}, context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if r := p.Run(ctx, req, h); r.Failure != nil {
			b.Fatal(r.Failure)
		}
	}
}

// BenchmarkDiscard measures a call whose runner dies of a panic: gate, compilation, run, and a new runner.
func BenchmarkDiscard(b *testing.B) {
	p := compilePool(b, nil)
	req, h, ctx := request(program("panic(\"x\")")), &fakeHost{}, context.Background()
	for b.Loop() {
		if r := p.Run(ctx, req, h); r.Failure == nil || r.Failure.Detail != "panic" {
			b.Fatal(said(r))
		}
	}
}
