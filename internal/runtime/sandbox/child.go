package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// This file and the confine files are the runner process. It trusts the daemon; it holds nothing worth having.

// childConfig is the first thing that a runner is told.
type childConfig struct {
	Memory     int64             `json:"memory"`      // bytes, RLIMIT_DATA
	CPUSeconds int64             `json:"cpu_seconds"` // of its life
	MaxValue   int               `json:"max_value"`
	MaxContext int               `json:"max_context"`
	MaxDepth   int               `json:"max_depth"`
	Engine     string            `json:"engine"`
	Probe      bool              `json:"probe,omitempty"` // canary: probe and end
	Kill       bool              `json:"kill,omitempty"`  // forbidden system calls end the runner instead of failing
	Parent     int               `json:"parent,omitempty"`
	Namespaces map[string]string `json:"namespaces,omitempty"` // the daemon's, for comparison
	Port       int               `json:"port,omitempty"`       // of a listener of the daemon's, for the canary to knock at
}

// childReady is what a confined runner says of itself.
type childReady struct {
	Layers map[string]string `json:"layers"` // layer → on, or off with the reason
	Probes map[string]string `json:"probes,omitempty"`
	Engine string            `json:"engine,omitempty"` // what the canary's engine answers wrongly
}

// RunnerArg is the command line of a runner.
const RunnerArg = "runner"

// RunnerMain is the whole of the hidden subcommand "runner": it confines the process, then serves the daemon over
// descriptors 0 and 3 until the pipe closes. It returns the exit code.
func RunnerMain() int { return Serve(NewEngine) }

// Serve is RunnerMain with another engine.
func Serve(newEngine func(setting string) (Engine, error)) int {
	landlockFirst()
	c := &childLoop{in: frameReader{src: fdFile(0)}, out: fdFile(answerFD)}
	if err := c.serve(newEngine); err != nil && err != io.EOF {
		fmt.Fprintln(fdFile(2), "runner:", err)
		return 3
	}
	return 0
}

// answerFD is where the runner answers. Its standard output and error are one pipe that the daemon only reads to
// learn how it died.
const answerFD = 3

// fdFile reads and writes a descriptor with plain blocking system calls: no poller, no goroutine to wake.
type fdFile int

func (f fdFile) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(f), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f fdFile) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(f), p[done:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

type childLoop struct {
	cfg    childConfig
	in     frameReader
	out    fdFile
	wr     frameBuilder
	engine Engine
	loaded bool

	base   int // goroutines before the first run
	memory []metrics.Sample
}

// soft limits of the Go runtime, below the hard ones so that it dies in good order.
const childStack = 64 << 20

func (c *childLoop) serve(newEngine func(setting string) (Engine, error)) error {
	if err := c.start(newEngine); err != nil || c.cfg.Probe {
		return err
	}
	for {
		kind, payload, err := c.in.next(1 << 30)
		if err != nil {
			return err
		}
		switch kind {
		case kindLoad:
			err = c.load(payload)
		case kindRun:
			err = c.run(payload)
		}
		if err != nil {
			return err
		}
	}
}

// start reads the configuration, confines the process and says so.
func (c *childLoop) start(newEngine func(setting string) (Engine, error)) error {
	kind, payload, err := c.in.next(maxReady)
	if err != nil {
		return err
	}
	if kind != kindConfig {
		return errFrame
	}
	if err := json.Unmarshal(payload, &c.cfg); err != nil {
		return err
	}
	runtime.GOMAXPROCS(childProcs)
	debug.SetMaxStack(childStack)
	debug.SetMemoryLimit(c.cfg.Memory * 2 / 3)
	ready := childReady{Layers: map[string]string{}}
	limitProcess(&c.cfg, ready.Layers)
	if c.engine, err = newEngine(c.cfg.Engine); err != nil {
		return err
	}
	if c.cfg.Probe {
		ready.Probes = map[string]string{}
	}
	if tested, ok := c.engine.(interface{ selfTest() error }); ok && c.cfg.Probe {
		if err := tested.selfTest(); err != nil {
			ready.Engine = boundText([]byte(err.Error()), 1000)
		}
	}
	c.base = runtime.NumGoroutine()
	// Nothing foreign has been read yet, and nothing is before this returns.
	confineProcess(&c.cfg, &ready)
	c.memory = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	c.wr.begin(kindReady)
	body, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	c.wr.b = append(c.wr.b, body...)
	return c.send()
}

// childProcs lets the collector work beside the program.
const childProcs = 2

func (c *childLoop) send() error {
	_, err := c.out.Write(c.wr.finish())
	c.wr.shrink()
	return err
}

// loadedForm is what a runner says of a source, as JSON.
type loadedForm struct {
	Facts   *gate.Facts   `json:"facts,omitempty"`
	Refusal *gate.Refusal `json:"refusal,omitempty"`
	Error   string        `json:"error,omitempty"`
	Fault   string        `json:"fault,omitempty"` // of the engine, in its words
}

func (c *childLoop) load(payload []byte) error {
	p := frameParser{b: payload}
	source := p.string()
	if !p.end() || c.loaded {
		return errFrame
	}
	c.loaded = true
	var form loadedForm
	var err error
	form.Facts, form.Refusal, err = c.safeLoad(source)
	if fault, ok := errors.AsType[*interp.Failure](err); ok {
		form.Fault = boundText([]byte(fault.Why), maxMessage)
	} else if err != nil {
		form.Error = boundText([]byte(err.Error()), maxMessage)
	}
	body, err := json.Marshal(form)
	if err != nil || len(body) > maxFacts-64 {
		body = []byte(`{"error":"the facts of the program are too large"}`)
	}
	c.wr.begin(kindLoaded)
	c.wr.b = append(c.wr.b, body...)
	return c.send()
}

func (c *childLoop) safeLoad(source string) (facts *gate.Facts, refusal *gate.Refusal, err error) {
	defer func() {
		if v := recover(); v != nil {
			facts, refusal, err = nil, nil, &interp.Failure{Why: fmt.Sprintf("compiling: %v", v)}
		}
	}()
	return c.engine.Load(source)
}

// parseLoaded reads what a runner says of a source.
func parseLoaded(payload []byte) (*gate.Facts, *Failure, error) {
	if err := checkValue(payload, 8); err != nil {
		return nil, nil, fmt.Errorf("facts with %w", err)
	}
	var form loadedForm
	if err := json.Unmarshal(payload, &form); err != nil {
		return nil, nil, errors.New("facts of no known form")
	}
	switch {
	case form.Refusal != nil:
		return nil, refused(form.Refusal), nil
	case form.Fault != "":
		return nil, engineFault(boundText([]byte(form.Fault), maxMessage)), nil
	case form.Error != "":
		return nil, &Failure{Type: agent.ErrInvalidCode, Detail: "compile", Message: boundText([]byte(form.Error), maxMessage),
			Hint: "The program could not be compiled for the interpreter. Write it in a plainer way."}, nil
	case form.Facts == nil:
		return nil, nil, errors.New("neither facts nor a refusal")
	}
	form.Facts.Engine = boundText([]byte(form.Facts.Engine), 64)
	return form.Facts, nil, nil
}

// refused turns the gate's refusal into a Failure.
func refused(r *gate.Refusal) *Failure {
	f := &Failure{Type: agent.ErrInvalidCode, Message: boundText([]byte(r.Message), maxMessage), Detail: "gate", Hint: boundText([]byte(r.Hint), maxMessage)}
	switch r.Type {
	case agent.ErrToolRegistry, agent.ErrDependencyPolicy:
		f.Type = r.Type
	}
	for i, line := range r.Errors {
		if i == 10 {
			break
		}
		if line = boundText([]byte(line), 400); line != f.Message {
			f.Message += "\n" + line
		}
	}
	return f
}

// run serves one call. The answer's value is encoded while the daemon's deadline is still on: encoding runs methods
// of the program.
func (c *childLoop) run(payload []byte) error {
	o, err := parseRun(payload)
	if err != nil || !c.loaded {
		return errFrame
	}
	host := &childHost{loop: c, nonce: o.nonce}
	a := c.evaluate(o, host)
	if host.broken != nil {
		return host.broken
	}
	a.nonce = o.nonce
	clock, chance := c.engine.Reads()
	a.clock, a.chance = uint64(max(clock, 0)), uint64(max(chance, 0))
	a.discard = c.leftovers()
	appendAnswer(&c.wr, a)
	return c.send()
}

func (c *childLoop) evaluate(o *runOrder, host *childHost) (a *answer) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *interp.Failure: // in a method of the error that the program returned
			a = faulty(v.Why)
		default:
			a = failed(agent.ErrExecution, "panic", fmt.Sprintf("panic: %v", v), "")
		}
	}()
	call, err := recurgent.New(o.in, host)
	if err != nil {
		return failed(agent.ErrExecution, "input", "the arguments cannot be decoded: "+err.Error(), "")
	}
	value, err, panicked := c.engine.Run(call, o.now, o.seed)
	switch {
	case panicked != nil && panicked.Class == interp.ClassFailure:
		return faulty(panicked.Message)
	case panicked != nil:
		message := "panic: " + panicked.Message
		if panicked.Line > 0 {
			message += fmt.Sprintf(" (program.go:%d)", panicked.Line)
		}
		if panicked.Class == "fatal error" && strings.Contains(message, "stack overflow") {
			return failed(agent.ErrResourceExhausted, "stack", message, "Use a loop, or bound the depth of the recursion.")
		}
		return failed(agent.ErrExecution, "panic", message, "")
	case err != nil:
		f := recurgent.AsFailure(err)
		return &answer{end: endAuthored, errType: boundText([]byte(f.Type), 64), message: boundText([]byte(f.Message), maxMessage-8)}
	}
	raw, err := c.engine.Encode(value)
	if err == nil {
		err = c.fits(raw)
	}
	if fault, ok := errors.AsType[*interp.Failure](err); ok {
		return faulty(fault.Why)
	}
	if err != nil {
		return failed(agent.ErrNonSerializable, "", "the result has no JSON form: "+err.Error(), "Return plain data: maps, slices, strings, numbers, booleans, nil.")
	}
	a = &answer{end: endValue, value: raw}
	if f := c.diff(o, call.Context, a); f != nil {
		return f
	}
	return a
}

func (c *childLoop) fits(raw []byte) error {
	if len(raw) > c.cfg.MaxValue {
		return fmt.Errorf("it takes %d bytes, at most %d are allowed", len(raw), c.cfg.MaxValue)
	}
	return checkValue(raw, c.cfg.MaxDepth)
}

// faulty is the answer when the engine is at fault. The daemon ends a runner that gives it.
func faulty(why string) *answer {
	return &answer{end: endFault, message: boundText([]byte(why), maxMessage-8)}
}

func failed(errType, detail, message, hint string) *answer {
	return &answer{end: endFailure, errType: errType, message: boundText([]byte(message), maxMessage-8), detail: detail, hint: hint}
}

// leftovers reports whether the run left anything behind: goroutines, or much memory.
func (c *childLoop) leftovers() bool {
	if runtime.NumGoroutine() > c.base {
		return true
	}
	metrics.Read(c.memory)
	return c.memory[0].Value.Uint64() > uint64(c.cfg.Memory/4)
}

// diff compares the context with what came, by encoded value of each top-level key.
func (c *childLoop) diff(o *runOrder, after map[string]any, a *answer) *answer {
	change := &agent.ContextChange{}
	total := 0
	for k, v := range after {
		raw, err := c.engine.Encode(v)
		if fault, ok := errors.AsType[*interp.Failure](err); ok {
			return faulty(fault.Why)
		}
		if err != nil {
			return failed(agent.ErrNonSerializable, "context", fmt.Sprintf("context key %.100q has no JSON form: %v", k, err), "Keep only plain data in the context.")
		}
		before, had := o.context[k]
		if had && (string(before) == string(raw) || c.same(before, raw)) {
			continue
		}
		total += len(k) + len(raw)
		limits := Options{MaxContext: c.cfg.MaxContext, MaxDepth: c.cfg.MaxDepth}
		if err := checkContext([]byte(k), raw, total, &limits); err != nil {
			return failed(agent.ErrNonSerializable, "context", fmt.Sprintf("context key %.100q: %v", k, err), "Keep little in the context.")
		}
		if change.Set == nil {
			change.Set = map[string]json.RawMessage{}
		}
		change.Set[k] = raw
	}
	for k := range o.context {
		if _, ok := after[k]; !ok {
			change.Delete = append(change.Delete, k)
		}
	}
	if !change.Empty() {
		a.change = change
	}
	return nil
}

// same reports whether the stored text, which may be written in another way, decodes to what raw encodes: a number
// beyond float64's precision that a program has not touched must not be rewritten.
func (c *childLoop) same(before, raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(before, &v) != nil {
		return false
	}
	again, err := c.engine.Encode(v)
	return err == nil && string(again) == string(raw)
}
