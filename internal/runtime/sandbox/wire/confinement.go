package wire

// A Confinement is what a native executable puts on itself: made by the daemon, since an executable has no code to make it.
type Confinement struct {
	Filter   []Instruction `json:"filter"` // of seccomp
	PID      uint32        `json:"pid"`    // stands in Filter for the process's own number
	Landlock *Ruleset      `json:"landlock,omitempty"`
	Off      string        `json:"off,omitempty"` // why there is no Landlock
}

// An Instruction is one of a classic BPF program.
type Instruction struct {
	Code uint16 `json:"c"`
	Jt   uint8  `json:"t,omitempty"`
	Jf   uint8  `json:"f,omitempty"`
	K    uint32 `json:"k,omitempty"`
}

// A Ruleset is all that the kernel's landlock can forbid.
type Ruleset struct {
	ABI    int    `json:"abi"`
	FS     uint64 `json:"fs"`
	Net    uint64 `json:"net"`
	Scoped uint64 `json:"scoped"`
}
