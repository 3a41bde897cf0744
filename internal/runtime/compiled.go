package runtime

import (
	"github.com/recurgentd/recurgentd/internal/runtime/env"
)

// Compiling returns whether programs are compiled, with which toolchain, or why not.
func (r *Runtime) Compiling() env.Compiling { return r.env.Compiling }
