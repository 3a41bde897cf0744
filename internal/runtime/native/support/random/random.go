// Package random has libraries that read crypto/rand.Reader draw from the randomness of the run. Programs that import
// such a library are linked with it.
package random

import (
	"crypto/rand"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
)

func init() { rand.Reader = support.Reader }
