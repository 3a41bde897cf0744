// Recurgentd is a daemon that answers calls of methods which nobody has written. A call names a role and a method: a
// model writes the program once, and from then on the program answers. This binary is the daemon (serve) and the client
// commands. It embeds recurgent-runner, the binary of the confined processes that run programs. Built without that, it
// runs itself as the runner.
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

func main() {
	// The runner is checked first: it must start within milliseconds and needs nothing else. Only this path links the
	// packages that parse programs into the binary.
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	os.Exit(cli.Main(cli.System(), os.Args[1:]))
}
