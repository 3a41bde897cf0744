package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Config is the first thing that a runner is sent, as JSON.
type Config struct {
	Memory     int64             `json:"memory"`      // bytes that the runner may use
	CPUSeconds int64             `json:"cpu_seconds"` // of its life
	MaxValue   int               `json:"max_value"`
	MaxContext int               `json:"max_context"`
	MaxDepth   int               `json:"max_depth"`
	Engine     string            `json:"engine"`
	Probe      bool              `json:"probe,omitempty"` // canary: probe and end
	Parent     int               `json:"parent,omitempty"`
	Namespaces map[string]string `json:"namespaces,omitempty"` // the daemon's own, for comparison: what Namespaces returns there
	Confine    *Confinement      `json:"confine,omitempty"`
	Port       int               `json:"port,omitempty"` // of a listener of the daemon's, for the canary to try to reach
}

// Limits are the bounds of an answer that the configuration sets.
func (c *Config) Limits() Limits { return Limits{c.MaxValue, c.MaxContext, c.MaxDepth} }

// Put builds the frame.
func (c *Config) Put(f *Builder) error { return putJSON(f, KindConfig, c) }

// Ready is what a confined runner reports of itself, as JSON.
type Ready struct {
	Layers map[string]string `json:"layers"` // layer → on, or off with the reason
	Probes map[string]string `json:"probes,omitempty"`
	Engine string            `json:"engine,omitempty"` // what the canary's engine answers wrongly
	Build  string            `json:"build,omitempty"`  // Build of the runner's binary
}

// Build names the source that this binary's runner was made of. The linker sets it (scripts/build), to the same in a runner and in the
// daemon that carries it; "" in other binaries.
var Build string

// Put builds the frame.
func (r *Ready) Put(f *Builder) error { return putJSON(f, KindReady, r) }

// PutLoad builds the frame that brings a program's source.
func PutLoad(f *Builder, source string) {
	f.Begin(KindLoad)
	f.PutString(source)
}

// ParseLoad returns the source.
func ParseLoad(payload []byte) (source string, err error) {
	p := Parse(payload)
	source = p.TakeString()
	if !p.End() {
		return "", ErrFrame
	}
	return source, nil
}

// Loaded is what a runner reports of a source, as JSON: facts, or why there are none.
type Loaded struct {
	Facts   *report.Facts   `json:"facts,omitempty"`
	Refusal *report.Refusal `json:"refusal,omitempty"`
	Error   string          `json:"error,omitempty"`
	Fault   string          `json:"fault,omitempty"` // of the engine, in its words
}

// Put builds the frame. Facts that take more than their bound become an error.
func (l *Loaded) Put(f *Builder) {
	if err := putJSON(f, KindLoaded, l); err != nil || len(f.b)-frameHead > MaxFacts-64 {
		f.Begin(KindLoaded)
		f.PutRaw([]byte(`{"error":"the facts of the program are too large"}`))
	}
}

// maxEngine bounds the name and version of an engine, in bytes.
const maxEngine = 64

// ParseLoaded takes apart what a runner reports of a source. One of the four members is set, and every text is bounded, except for
// those in Facts and Refusal, which together have at most MaxFacts bytes.
func ParseLoaded(payload []byte) (*Loaded, error) {
	if err := CheckValue(payload, 8); err != nil {
		return nil, fmt.Errorf("facts with %w", err)
	}
	var l Loaded
	if err := json.Unmarshal(payload, &l); err != nil {
		return nil, errors.New("facts of no known form")
	}
	if l.Facts == nil && l.Refusal == nil && l.Error == "" && l.Fault == "" {
		return nil, errors.New("neither facts nor a refusal")
	}
	if l.Facts != nil {
		l.Facts.Engine = BoundText([]byte(l.Facts.Engine), maxEngine)
	}
	l.Error, l.Fault = BoundText([]byte(l.Error), MaxMessage), BoundText([]byte(l.Fault), MaxMessage)
	return &l, nil
}

func putJSON(f *Builder, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f.Begin(kind)
	f.PutRaw(body)
	return nil
}
