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

// check has a blank runner, or one that has fixed a program, gate the source and write the text to compile.
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

// RunTools runs the steps, each in a process that is confined to the directories, without network, and returns what the one that
// failed wrote. Each writes one file, which RunTools makes, and no other. The daemon must own the directories. The error of one that needs more than t allows is a *wire.ToolLimit.
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

// runTool runs one step, until its process ends by itself.
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

// toolEnd says how a tool ended: by a bound of t, or otherwise. Where one has run out of memory and is not known to have had more than floor, a third of its bound, the machine may
// lack memory. What the kernel says that it had is no less than the daemon's own peak at its start.
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

// toolFiles opens the files that a launcher of tools has in addition to its pipes, in the order of package wire.
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

// toolsTimeout bounds tools where ctx does not end before.
const toolsTimeout = 5 * time.Minute

// exchange sends the frame that has been built and returns the payload of the one frame that answers it.
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
