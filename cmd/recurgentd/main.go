// Recurgentd is a daemon in which a call names a role and a method that nobody has written: a model writes the program
// once, and from then on the program answers. The one binary is the daemon (serve) and the client commands. It carries the program of the
// confined processes in which programs run (recurgent-runner), and is that itself (runner) where it was built without.
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

func main() {
	// The runner comes first: it must start in milliseconds and needs nothing else. This is the one place from which the binary
	// reaches what parses programs.
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	os.Exit(cli.Main(cli.System(), os.Args[1:]))
}
