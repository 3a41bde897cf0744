//go:build embedded && linux

package embedded

import _ "embed"

// Runner is the executable of runners, compressed by zstd.
//
//go:embed recurgent-runner
var Runner string

// Launcher is the executable of launchers, compressed by zstd.
//
//go:embed recurgent-launcher
var Launcher string
