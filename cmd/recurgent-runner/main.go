// Recurgent-runner is the confined process in which one program runs. recurgentd embeds it and starts it over three
// pipes; it is of no use otherwise. Without an embedded one, the daemon executes itself as "recurgentd runner".
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

func main() {
	confine.NameThread() // before the Go runtime may move main to another thread
	os.Exit(worker.Main())
}
