// Recurgent-runner is the confined process in which one program runs. recurgentd carries it in its own binary and starts it over three
// pipes; nobody else does. Where the binary carries none, the daemon executes itself as "recurgentd runner" instead.
package main

import (
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

func main() {
	confine.NameThread() // before anything has the Go runtime take another thread
	os.Exit(worker.Main())
}
