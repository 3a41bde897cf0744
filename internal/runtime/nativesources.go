package runtime

import "embed"

// NativeSources holds the packages that native executables are built from, in addition to their programs, and the
// packages that generate program texts. It serves as native.Options.Sources.
//
//go:embed gate/*.go gate/allow/*.go gate/inputs/*.go gate/outside/*.go gate/report/*.go gate/residue/*.go gate/rewrite/*.go gate/rt/*.go native/support/*.go native/support/*/*.go plain/*.go recurgent/*.go recurgent/html/*.go recurgent/html/internal sandbox/narrow/*.go sandbox/narrow/now/*.go sandbox/serve/*.go sandbox/threads/*.go sandbox/wire/*.go
var NativeSources embed.FS
