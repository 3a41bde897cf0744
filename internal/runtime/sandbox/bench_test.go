package sandbox

import (
	"context"
	"testing"
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
		r, f := p.spawn(context.Background())
		if f != nil {
			b.Fatal(f)
		}
		r.kill("bench")
	}
}
