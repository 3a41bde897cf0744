package wire

// A Confinement is what a runner or a native executable puts on itself: made by the daemon, since making it takes code and time that each process would
// have to have.
type Confinement struct {
	Filter   []byte // of seccomp, instructions as the kernel takes them, 8 bytes each
	PID      uint32 // stands in Filter for the process's own number
	Landlock *Ruleset
	Given    string // the layer's state where Landlock is nil: why there is none, or that the process was started under it
}

// A Ruleset is all that the kernel's landlock can forbid.
type Ruleset struct {
	ABI    int
	FS     uint64
	Net    uint64
	Scoped uint64
}

func (c *Confinement) put(f *Builder) {
	f.PutBytes(c.Filter)
	f.PutUint(uint64(c.PID))
	f.PutString(c.Given)
	f.PutBool(c.Landlock != nil)
	if r := c.Landlock; r != nil {
		f.PutUint(uint64(r.ABI))
		f.PutFixed(r.FS)
		f.PutFixed(r.Net)
		f.PutFixed(r.Scoped)
	}
}

func takeConfinement(p *Parser) *Confinement {
	c := &Confinement{Filter: p.TakeBytes(), PID: uint32(p.TakeUint()), Given: p.TakeString()}
	if p.TakeBool() {
		c.Landlock = &Ruleset{ABI: int(p.TakeUint()), FS: p.TakeFixed(), Net: p.TakeFixed(), Scoped: p.TakeFixed()}
	}
	return c
}
