package runtime

// Compiling reports whether the daemon compiles programs.
type Compiling struct {
	Toolchain string // the version of Go that compiles; "" where nothing is compiled
	From      string // carried by the binary, or installed; "" where nothing is compiled
	Why       string // why nothing is compiled; "" where programs are
}

// Compiling reports whether programs are compiled, with which toolchain, or why not.
func (r *Runtime) Compiling() Compiling { return r.o.Compiling }
