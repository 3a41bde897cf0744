package sandbox

import (
	"context"
	"encoding/json"
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

// RunTools runs the tools in a process that is confined to their directories, without network and at the lowest priority, and returns what the one that
// failed wrote. The daemon must own the directories; t.Dir comes to belong to the user that runners are.
func (p *Pool) RunTools(ctx context.Context, t wire.Tools) ([]byte, error) {
	if rank(p.status.Level) < rank(LevelReduced) {
		return nil, fmt.Errorf("confinement is %q, tools need %q", p.status.Level, LevelReduced)
	}
	with := &image{path: p.image.path, args: append(slices.Clone(p.image.args), wire.ToolsArg)}
	defer func() { closeAll(with.extra) }()
	for _, dir := range append([]string{t.Dir}, t.Read...) {
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		with.extra = append(with.extra, f)
	}
	if err := p.spawner.plan.giveAway(with.extra[0]); err != nil {
		return nil, err
	}
	t.Reads = len(t.Read)
	var err error
	if t.Filter, err = policy.Tools(); err != nil {
		return nil, err
	}
	r, err := p.start(with)
	if err != nil {
		return nil, err
	}
	defer r.bury("tools")
	stop := context.AfterFunc(ctx, r.interrupt)
	defer stop()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(toolsTimeout)
	}
	r.arm(ctx, deadline)
	if err := t.Put(&r.wr); err != nil {
		return nil, err
	}
	payload, err := r.exchange(wire.KindToolsDone, wire.MaxToolsDone)
	if err != nil {
		return r.diary.text(), errors.Join(context.Cause(ctx), err)
	}
	var done wire.ToolsDone
	if err := json.Unmarshal(payload, &done); err != nil {
		return nil, wire.ErrFrame
	}
	if done.Failed != "" {
		return done.Said, errors.New(wire.BoundText([]byte(done.Failed), wire.MaxMessage))
	}
	return nil, nil
}

// toolsTimeout bounds tools that ctx does not.
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
