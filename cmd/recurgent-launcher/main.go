// Recurgent-launcher confines itself and becomes the executable of a compiled program, or a compiler or linker. recurgentd carries it in its own binary and starts it over three pipes; nobody else does.
// Where the binary carries none, the daemon executes itself as "recurgentd runner launch" instead.
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/launch"
)

func main() { os.Exit(launch.Main()) }
