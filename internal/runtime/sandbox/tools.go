package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// check gates the source in a runner that is blank or has fixed it, and returns the text to compile.
func (r *runner) check(ctx context.Context, source string, deadline time.Time) (*wire.Checked, *Failure) {
	stop := context.AfterFunc(ctx, r.interrupt)
	defer stop()
	r.arm(ctx, deadline)
	wire.PutNativeText(&r.wr, source)
	payload, err := r.exchange(wire.KindTextDone, wire.MaxChecked)
	if err != nil {
		return nil, r.fault(ctx, err, "")
	}
	c, err := wire.ParseChecked(payload)
	if err != nil {
		return nil, r.fault(ctx, err, "")
	}
	return c, nil
}

// RunTools runs the steps of t in order, each in a process without network that is confined to the directories of t. It
// returns the output of the step that failed. Each step writes a single file, which RunTools creates. The daemon must
// own the directories. If a step exceeds a bound of t, the error is a *wire.ToolLimit.
func (p *Pool) RunTools(ctx context.Context, t wire.Tools) ([]byte, error) {
	confinement, err := policy.Tool(&t, p.spawner.plan.toolTasks())
	if err != nil {
		return nil, err
	}
	confinement.User = p.spawner.plan.toolUser()
	ctx, cancel := context.WithTimeout(ctx, toolsTimeout)
	defer cancel()
	for _, step := range t.Steps {
		if said, err := p.runTool(ctx, confinement, &t, step); err != nil {
			return said, err
		}
	}
	return nil, nil
}

// runTool runs one step and waits until its process has been reaped.
func (p *Pool) runTool(ctx context.Context, confinement *wire.Confinement, t *wire.Tools,
	step wire.ToolStep) ([]byte, error) {
	files, err := p.toolFiles(t, step, confinement.User)
	defer closeAll(files)
	if err != nil {
		return nil, err
	}
	l := wire.Launch{Confine: *confinement, Args: append([]string{step.Tool}, step.Args...),
		Env: append(slices.Clone(t.Env), fmt.Sprintf("GOMEMLIMIT=%d", t.Memory*3/4), runnerProcs),
		Dir: wire.ToolDirFD, Keep: wire.AnswerFD}
	r, err := p.launch(l, files, reasonTools)
	if err != nil {
		return nil, err
	}
	floor := max(ownPeak(), t.Memory/3)
	stop := context.AfterFunc(ctx, func() { r.kill(reasonTools) })
	defer stop()
	<-r.gone
	if r.state != nil && r.state.Success() {
		return nil, nil
	}
	said := r.diary.text()
	if ctx.Err() != nil {
		return said, fmt.Errorf("%s: %w", step.Tool, context.Cause(ctx))
	}
	return said, fmt.Errorf("%s: %w", step.Tool, toolEnd(r.state, said, t, filepath.Base(step.Tool), floor))
}

// toolEnd returns the error of a failed tool: a *wire.ToolLimit if it hit a bound of t. A tool that ran out of memory
// hit its bound only if its peak exceeded floor. Otherwise the machine may lack memory. floor is a third of the bound,
// but at least the daemon's own peak, because the kernel's figure for a child includes the daemon's peak at the start.
func toolEnd(state *os.ProcessState, said []byte, t *wire.Tools, tool string, floor int64) error {
	full := peakMemory(state) > floor
	died := readWords(said).failure(full)
	switch {
	case deathSignal(state, t.CPU) == "cpu":
		return &wire.ToolLimit{Bound: wire.BoundCPU, Tool: tool, Most: fmt.Sprintf("%d s", t.CPU)}
	case bytes.Contains(said, []byte(syscall.EFBIG.Error())):
		return &wire.ToolLimit{Bound: wire.BoundFile, Tool: tool, Most: mebibytes(t.File)}
	case died != nil && (died.Detail == "stack" || full && died.Detail == "memory"):
		return &wire.ToolLimit{Bound: wire.BoundMemory, Tool: tool, Most: mebibytes(t.Memory)}
	}
	return fmt.Errorf("%v", state)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// toolFiles opens the files that a launcher of tools gets after its pipes, in the order that package wire defines. The
// caller closes the files, also after an error.
func (p *Pool) toolFiles(t *wire.Tools, step wire.ToolStep, user int) (files []*os.File, err error) {
	open := func(name string, flag int) {
		if err != nil {
			return
		}
		var f *os.File
		if f, err = os.OpenFile(name, flag, 0); err == nil {
			files = append(files, f)
		}
	}
	open(step.Tool, os.O_RDONLY)
	open(t.Dir, os.O_RDONLY)
	if err != nil {
		return files, err
	}
	out, err := p.spawner.plan.giveAway(files[1], step.Writes, user)
	if err != nil {
		return files, err
	}
	files = append(files, out)
	open(os.DevNull, os.O_RDWR)
	for _, dir := range t.Read {
		open(dir, os.O_RDONLY)
	}
	return files, err
}

// toolsTimeout bounds all steps of RunTools together, if ctx does not end before.
const toolsTimeout = 5 * time.Minute

// exchange sends the frame built in wr and returns the payload of the reply, which must be a single frame of the kind.
func (r *runner) exchange(kind byte, limit int) ([]byte, error) {
	if _, err := r.in.Write(r.wr.Finish()); err != nil {
		return nil, err
	}
	r.wr.Shrink()
	got, payload, err := r.rd.Next(limit)
	if err == nil && (got != kind || r.rd.Buffered()) {
		err = wire.ErrFrame
	}
	return payload, err
}
