package wire

// A Confinement is what a runner or a native executable puts on itself: made by the daemon, since making it takes code and time that each process would
// have to have.
type Confinement struct {
	Filter   []byte   `json:"filter"` // of seccomp, instructions as the kernel takes them, 8 bytes each
	PID      uint32   `json:"pid"`    // stands in Filter for the process's own number
	Landlock *Ruleset `json:"landlock,omitempty"`
	Off      string   `json:"off,omitempty"` // why there is no Landlock
}

// A Ruleset is all that the kernel's landlock can forbid.
type Ruleset struct {
	ABI    int    `json:"abi"`
	FS     uint64 `json:"fs"`
	Net    uint64 `json:"net"`
	Scoped uint64 `json:"scoped"`
}
