//go:build embedded

package embedded

import _ "embed"

// Compiler is the pack of the Go compiler that the daemon was built with (package carried).
//
//go:embed compiler
var Compiler string
