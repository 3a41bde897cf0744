package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	stop := context.AfterFunc(ctx, r.interrupt)
	defer stop()
	r.arm(ctx, time.Now().Add(loadTimeout))
	wire.PutNativeText(&r.wr, source)
	payload, err := r.exchange(wire.KindTextDone, wire.MaxNativeText)
	if err != nil {
		return "", r.fault(ctx, err, "").asError(ctx)
	}
	t, err := wire.ParseNativeText(payload)
	if err != nil {
		return "", err
	}
	if t.Reason != "" {
		return "", fmt.Errorf("%w: %s", ErrNoNativeForm, t.Reason)
	}
	return t.Text, nil
}

// RunTools runs the steps, each in a process that is confined to the directories, without network and at the lowest priority, and returns what the one that
// failed wrote. Each writes one file, which RunTools makes, and no other. The daemon must own the directories.
func (p *Pool) RunTools(ctx context.Context, t wire.Tools) ([]byte, error) {
	if rank(p.status.Level) < rank(LevelReduced) {
		return nil, fmt.Errorf("confinement is %q, tools need %q", p.status.Level, LevelReduced)
	}
	with := &image{path: p.image.path, args: append(slices.Clone(p.image.args), wire.ToolsArg), tool: true}
	defer func() { closeAll(with.extra) }()
	for _, dir := range append([]string{t.Dir}, t.Read...) {
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		with.extra = append(with.extra, f)
	}
	t.Reads, t.Tasks = len(t.Read), p.spawner.plan.toolTasks()
	var err error
	if t.Filter, err = policy.Tools(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, toolsTimeout)
	defer cancel()
	for _, t.Step = range t.Steps {
		if err := p.spawner.plan.giveAway(with.extra[0], t.Step.Writes); err != nil {
			return nil, err
		}
		if said, err := p.runTool(ctx, with, &t); err != nil {
			return said, err
		}
	}
	return nil, nil
}

// runTool runs one step. Its process becomes the tool: that ends the pipe, and then it ends itself.
func (p *Pool) runTool(ctx context.Context, with *image, t *wire.Tools) ([]byte, error) {
	r, err := p.start(with)
	if err != nil {
		return nil, err
	}
	r.endsItself("tools")
	stop := context.AfterFunc(ctx, func() { r.kill("tools") })
	defer stop()
	if err := t.Put(&r.wr); err != nil {
		r.bury("tools")
		return nil, err
	}
	payload, err := r.exchange(wire.KindToolsDone, wire.MaxToolsDone)
	if err == nil {
		r.bury("tools")
		var done wire.ToolsDone
		if json.Unmarshal(payload, &done) != nil {
			return nil, wire.ErrFrame
		}
		return nil, errors.New(wire.BoundText([]byte(done.Failed), wire.MaxMessage))
	}
	if err != io.EOF {
		r.kill("tools")
	}
	<-r.gone
	if err == io.EOF && r.state != nil && r.state.Success() {
		return nil, nil
	}
	return r.diary.text(), fmt.Errorf("%s: %w", t.Step.Tool, cmp.Or(context.Cause(ctx), fmt.Errorf("%v", r.state)))
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
