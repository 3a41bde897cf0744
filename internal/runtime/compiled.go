package runtime

// Compiling describes whether the daemon compiles programs.
type Compiling struct {
	Toolchain string // version of the Go toolchain; "" if nothing is compiled
	From      string // whether the toolchain is carried by the binary or installed; "" if nothing is compiled
	Why       string // why nothing is compiled; "" if programs are
}

// Compiling returns whether programs are compiled, with which toolchain, or why not.
func (r *Runtime) Compiling() Compiling { return r.env.Compiling }
