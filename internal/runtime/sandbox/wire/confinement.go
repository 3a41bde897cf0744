package wire

// A Confinement is what a process puts on itself, or a launcher on the executable that it becomes. The daemon makes it (package policy), since making it takes code and time
// that each process would have to have; package confine applies it.
type Confinement struct {
	Limits     []Limit
	User       int               // that the process must have for layer uid
	Namespaces map[string]string // the daemon's own, for comparison: what Namespaces returns there
	Landlock   *Ruleset
	// the layer's state where Landlock is nil: why there is none, or that the process was started under it
	Given string
	// of seccomp, instructions as the kernel takes them, 8 bytes each; empty where the system has none
	Filter []byte
	PID    uint32 // stands in Filter for the process's own number
}

// A Limit is a resource limit of the process, soft and hard.
type Limit struct {
	Resource int
	Value    uint64
}

// A Ruleset is all that the kernel's landlock can forbid, and what it leaves.
type Ruleset struct {
	ABI    int
	FS     uint64
	Net    uint64
	Scoped uint64
	Rules  []Rule
}

// A Rule leaves rights to a file, or to all below a directory.
type Rule struct {
	FD     int
	Access uint64
}

// Limit returns the limit of a resource, 0 where there is none.
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
