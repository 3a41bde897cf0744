// Recurgentd is a daemon in which a call names a role and a method that nobody has written: a model writes the program
// once, and from then on the program answers. The one binary is the daemon (serve), the confined process in which
// programs run (runner), and the client commands.
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/cli"
)

func main() { os.Exit(cli.Main(cli.System(), os.Args[1:])) }
