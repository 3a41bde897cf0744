// Recurgent-launcher confines itself and then executes a compiled program, or a compiler or linker. recurgentd embeds
// it and starts it over three pipes; it is of no use otherwise. Without an embedded one, the daemon executes itself as
// "recurgentd runner launch".
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/launch"
)

func main() { os.Exit(launch.Main()) }
