package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// ErrNoNativeForm matches the error of a program that only an engine can run.
var ErrNoNativeForm = errors.New("the program has no native form")

// NativeText has a runner check the source and returns the text that a Go toolchain compiles for its native executable (package native). Where
// the program has none, the error matches ErrNoNativeForm.
func (p *Pool) NativeText(ctx context.Context, source string) (string, error) {
	if len(source) > p.opts.MaxSource {
		return "", fmt.Errorf("%w: it has %d bytes", ErrNoNativeForm, len(source))
	}
	r, failure := p.takeBlank(ctx)
	if failure != nil {
		return "", failure.asError(ctx)
	}
	defer r.kill("native text") // it serves one source
	c, failure := r.check(ctx, source, time.Now().Add(loadTimeout))
	switch {
	case failure != nil:
		return "", failure.asError(ctx)
	case c.Refusal != nil:
		return "", fmt.Errorf("%w: %s", ErrNoNativeForm, c.Refusal.Message)
	case c.Facts == nil:
		return "", fmt.Errorf("%w: %s", ErrNoNativeForm, c.Error+c.Fault)
	}
	return c.Text, nil
}

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
// failed wrote. Each writes one file, which RunTools makes, and no other. The daemon must own the directories.
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
func (p *Pool) runTool(ctx context.Context, confinement *wire.Confinement, t *wire.Tools, step wire.ToolStep) ([]byte, error) {
	files, err := p.toolFiles(t, step)
	defer closeAll(files)
	if err != nil {
		return nil, err
	}
	l := wire.Launch{Confine: *confinement, Args: append([]string{step.Tool}, step.Args...), Env: append(slices.Clone(t.Env), fmt.Sprintf("GOMEMLIMIT=%d", t.Memory*3/4), runnerProcs),
		Dir: wire.ToolDirFD, Keep: wire.AnswerFD}
	r, err := p.launch(l, files, reasonTools)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { r.kill(reasonTools) })
	defer stop()
	<-r.gone
	if r.state != nil && r.state.Success() {
		return nil, nil
	}
	return r.diary.text(), fmt.Errorf("%s: %w", step.Tool, cmp.Or(context.Cause(ctx), fmt.Errorf("%v", r.state)))
}

// toolFiles opens the files that a launcher of tools has in addition to its pipes, in the order of package wire.
func (p *Pool) toolFiles(t *wire.Tools, step wire.ToolStep) (files []*os.File, err error) {
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
	out, err := p.spawner.plan.giveAway(files[1], step.Writes)
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

// asError returns a failure as an error, or why ctx has ended.
func (f *Failure) asError(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New(f.Message)
}
