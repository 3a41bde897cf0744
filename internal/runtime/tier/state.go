package tier

// A State reports whether programs are compiled at all.
type State struct {
	On        bool
	Toolchain string // with which Go version; "" where they are not
	From      string // carried by the binary, or installed; "" where they are not
	Why       string // why they are not
}

// State reports whether programs are compiled at present. What is compiled goes on to run natively where they are not any more.
func (t *Tier) State() State {
	switch {
	case t == nil:
		return State{Why: "this daemon has no native tier"}
	case t.o.Builder == nil:
		return State{Why: t.o.Why}
	}
	if t.o.Fault != nil {
		if err := t.o.Fault(); err != nil {
			return State{Why: err.Error()}
		}
	}
	return State{On: true, Toolchain: t.o.Toolchain, From: t.o.From}
}
