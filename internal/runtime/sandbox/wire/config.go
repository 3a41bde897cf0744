package wire

// Config is the first message to a runner.
type Config struct {
	Memory     int64 // bytes that the runner may use
	MaxValue   int
	MaxContext int
	MaxDepth   int
	Engine     string       // see sandbox.Options.Engine
	Probe      bool         // the runner is the canary: it probes its confinement and reports
	Parent     int          // process id of the daemon
	Confine    *Confinement // nil for an executable, which a launcher has confined
	Port       int          // loopback port of the daemon, for the canary to try to reach
}

// Limits returns the bounds of an answer that the configuration sets.
func (c *Config) Limits() Limits { return Limits{c.MaxValue, c.MaxContext, c.MaxDepth} }

// Put builds the frame in f. Like all frames of a start it does not use JSON, because encoding/json would have to
// inspect its types in every new process.
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

// ParseConfig parses a configuration. The result shares memory with the payload.
func ParseConfig(payload []byte) (*Config, error) {
	p := parse(payload)
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

// Ready is the report of a runner that has confined itself.
type Ready struct {
	Layers map[string]string // by layer: on, or off with the reason
	Probes map[string]string // by probe: denied or ALLOWED; the canary only
	Build  string            // Build of the runner's binary
}

// Build identifies the source from which this binary's runner was built. The linker sets it (scripts/build) to the same
// value in a runner and in the daemon that embeds it. It is empty in other binaries.
var Build string

// Put builds the frame in f.
func (r *Ready) Put(f *Builder) {
	f.Begin(KindReady)
	f.PutTexts(r.Layers)
	f.PutTexts(r.Probes)
	f.PutString(r.Build)
}

// ParseReady parses a report. Layers and Probes are nil if they are empty.
func ParseReady(payload []byte) (*Ready, error) {
	p := parse(payload)
	r := &Ready{Layers: p.TakeTexts(), Probes: p.TakeTexts(), Build: p.TakeText(maxReadyText)}
	if !p.End() {
		return nil, ErrFrame
	}
	return r, nil
}

// maxReadyText bounds each text of a report, in bytes.
const maxReadyText = 2000
