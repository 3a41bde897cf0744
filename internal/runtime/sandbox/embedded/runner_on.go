//go:build embedrunner && linux

package embedded

import _ "embed"

// Runner is the executable file.
//
//go:embed recurgent-runner
var Runner string
