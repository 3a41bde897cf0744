//go:build embedded

package embedded

import _ "embed"

// Compiler is the archive of the Go compiler that built the daemon (see package carried).
//
//go:embed compiler
var Compiler string
