// Program is an executable of the rig's compiler.
package main

import (
	"os"

	_ "github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow/now"
	"github.com/recurgentd/recurgentd/test/e2e/rig/compiled"
)

func main() { os.Exit(compiled.Main()) }
