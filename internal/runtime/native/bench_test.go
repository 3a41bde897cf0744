package native_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// BenchmarkColdStart measures the start of an executable's process until it has its program and has answered a first
// call, in a daemon with embedded runners and launchers. In addition to the time it reports Timing.Spawn, and the
// processor time of the processes and of the daemon, in microseconds.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	tools := exec.Command("go", "build", "-ldflags",
		"-s -w -X github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire.Build=bench", "-o", dir,
		"./cmd/recurgent-runner", "./cmd/recurgent-launcher")
	tools.Dir, tools.Env = "../../..", append(tools.Environ(), "CGO_ENABLED=0")
	if text, err := tools.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	makes, _ := builder(b)
	if _, err := build(b, makes, program); err != nil {
		b.Fatal(err)
	}
	embedded.File, embedded.LauncherFile, wire.Build = filepath.Join(dir, "recurgent-runner"),
		filepath.Join(dir, "recurgent-launcher"), "bench"
	o := sandbox.DefaultOptions()
	o.Blank, o.Isolation, o.Native = 0, sandbox.IsolationCall, true
	p, err := sandbox.New(o)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	req := sandbox.Request{Program: sandbox.Program{Source: program, Checksum: agent.Checksum(program)},
		Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c", Now: time.Unix(1790000000, 0),
		Timeout: time.Minute}
	p.UseCompiler(kept{makes})
	var spawn time.Duration
	before, own := usedBy(syscall.RUSAGE_CHILDREN), usedBy(syscall.RUSAGE_SELF)
	for b.Loop() {
		got := p.Run(b.Context(), req, host{})
		if got.Failure != nil {
			b.Fatal(got.Failure)
		}
		spawn += got.Timing.Spawn
	}
	b.ReportMetric(float64((usedBy(syscall.RUSAGE_CHILDREN)-before).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64((usedBy(syscall.RUSAGE_SELF)-own).Microseconds())/float64(b.N), "daemon-us/op")
	b.ReportMetric(float64(spawn.Microseconds())/float64(b.N), "spawn-us/op")
}

// kept makes a builder's Find available to a pool, as a daemon does.
type kept struct{ *native.Builder }

func (kept) Engine() string { return report.EngineGo }

func (k kept) Find(checksum string) (*sandbox.Executable, error) {
	x, err := k.Builder.Find(checksum)
	if x == nil {
		return nil, err
	}
	return &sandbox.Executable{File: x.File, Facts: &report.Facts{}}, nil
}

func (kept) Compile(context.Context, sandbox.Compilation) (*sandbox.Executable, error) {
	return nil, errors.New("it is not kept")
}

// usedBy returns the processor time of this process, or of all its ended children.
func usedBy(who int) time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(who, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
