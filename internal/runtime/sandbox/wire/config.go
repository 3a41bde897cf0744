package wire

// Config is the first thing that a runner is sent.
type Config struct {
	Memory     int64 // bytes that the runner may use
	MaxValue   int
	MaxContext int
	MaxDepth   int
	Engine     string
	Probe      bool // canary: probe and end
	Parent     int
	Confine    *Confinement // nil for an executable, which a launcher has confined
	Port       int          // of a listener of the daemon's, for the canary to try to reach
}

// Limits are the bounds of an answer that the configuration sets.
func (c *Config) Limits() Limits { return Limits{c.MaxValue, c.MaxContext, c.MaxDepth} }

// Put builds the frame. It is no JSON, as no frame of a start is: that would have encoding/json look at its types in each process.
func (c *Config) Put(f *Builder) {
	f.Begin(KindConfig)
	for _, n := range []int{int(c.Memory), c.MaxValue, c.MaxContext, c.MaxDepth, c.Parent, c.Port} {
		f.PutUint(uint64(n))
	}
	f.PutString(c.Engine)
	f.PutBool(c.Probe)
	f.PutBool(c.Confine != nil)
	if c.Confine != nil {
		c.Confine.put(f)
	}
}

// ParseConfig returns the configuration, which shares memory with the payload.
func ParseConfig(payload []byte) (*Config, error) {
	p := Parse(payload)
	c := &Config{Memory: int64(p.TakeUint())}
	for _, n := range []*int{&c.MaxValue, &c.MaxContext, &c.MaxDepth, &c.Parent, &c.Port} {
		*n = int(p.TakeUint())
	}
	c.Engine, c.Probe = p.TakeString(), p.TakeBool()
	if p.TakeBool() {
		c.Confine = takeConfinement(&p)
	}
	if !p.End() {
		return nil, ErrFrame
	}
	return c, nil
}

// Ready is what a confined runner reports of itself.
type Ready struct {
	Layers map[string]string // layer → on, or off with the reason
	Probes map[string]string
	Build  string // Build of the runner's binary
}

// Build names the source that this binary's runner was made of. The linker sets it (scripts/build), to the same in a runner and in the
// daemon that carries it; "" in other binaries.
var Build string

// Put builds the frame.
func (r *Ready) Put(f *Builder) {
	f.Begin(KindReady)
	f.PutTexts(r.Layers)
	f.PutTexts(r.Probes)
	f.PutString(r.Build)
}

// ParseReady returns the report. Layers and Probes are nil where nothing is in them.
func ParseReady(payload []byte) (*Ready, error) {
	p := Parse(payload)
	r := &Ready{Layers: p.TakeTexts(), Probes: p.TakeTexts(), Build: p.TakeText(maxReadyText)}
	if !p.End() {
		return nil, ErrFrame
	}
	return r, nil
}

// maxReadyText bounds each text of a report, in bytes.
const maxReadyText = 2000
