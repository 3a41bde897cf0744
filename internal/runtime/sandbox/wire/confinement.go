package wire

// A Confinement describes the restrictions that a process applies to itself, or a launcher before it executes a file.
// The daemon computes it (package policy), because that takes code and time that each process would otherwise need.
// Package confine applies it.
type Confinement struct {
	Limits     []Limit
	User       int               // user id that the process must have for the layer uid
	Namespaces map[string]string // the daemon's own namespaces, for comparison with those of the process
	Landlock   *Ruleset          // nil if the process does not apply landlock itself
	// Given is the state of the layer if Landlock is nil: why there is none, or that the process was started under it.
	Given string
	// Filter is the seccomp program, as the kernel's instructions of 8 bytes each. It is empty if the system has no
	// seccomp.
	Filter []byte
	PID    uint32 // placeholder in Filter for the process's own id
}

// A Limit sets the soft and hard limit of a resource (setrlimit(2)).
type Limit struct {
	Resource int
	Value    uint64
}

// A Ruleset lists the rights that landlock restricts, and the exceptions.
type Ruleset struct {
	ABI    int    // landlock ABI version of the kernel
	FS     uint64 // restricted rights on files
	Net    uint64 // restricted rights on ports
	Scoped uint64 // restricted scopes
	Rules  []Rule // exceptions
}

// A Rule allows rights on a file, or on everything below a directory.
type Rule struct {
	FD     int // open file or directory
	Access uint64
}

// Limit returns the limit of a resource, or 0 if there is none.
func (c *Confinement) Limit(resource int) uint64 {
	for _, l := range c.Limits {
		if l.Resource == resource {
			return l.Value
		}
	}
	return 0
}

func (c *Confinement) put(f *Builder) {
	f.PutUint(uint64(len(c.Limits)))
	for _, l := range c.Limits {
		f.PutUint(uint64(l.Resource))
		f.PutUint(l.Value)
	}
	f.PutUint(uint64(c.User))
	f.PutTexts(c.Namespaces)
	f.PutBytes(c.Filter)
	f.PutUint(uint64(c.PID))
	f.PutString(c.Given)
	f.PutBool(c.Landlock != nil)
	if r := c.Landlock; r != nil {
		f.PutUint(uint64(r.ABI))
		f.PutFixed(r.FS)
		f.PutFixed(r.Net)
		f.PutFixed(r.Scoped)
		f.PutUint(uint64(len(r.Rules)))
		for _, rule := range r.Rules {
			f.PutUint(uint64(rule.FD))
			f.PutFixed(rule.Access)
		}
	}
}

func takeConfinement(p *Parser) *Confinement {
	c := &Confinement{Limits: make([]Limit, p.TakeCount())}
	for i := range c.Limits {
		c.Limits[i] = Limit{int(p.TakeUint()), p.TakeUint()}
	}
	c.User, c.Namespaces = int(p.TakeUint()), p.TakeTexts()
	c.Filter, c.PID, c.Given = p.TakeBytes(), uint32(p.TakeUint()), p.TakeString()
	if p.TakeBool() {
		c.Landlock = &Ruleset{ABI: int(p.TakeUint()), FS: p.TakeFixed(), Net: p.TakeFixed(), Scoped: p.TakeFixed()}
		c.Landlock.Rules = make([]Rule, p.TakeCount())
		for i := range c.Landlock.Rules {
			c.Landlock.Rules[i] = Rule{int(p.TakeUint()), p.TakeFixed()}
		}
	}
	return c
}
