package apptest

import "github.com/recurgentd/recurgentd/internal/runtime/native/nativetest"

// Compiler returns the directory of compiled programs (app.Options.CompilerDir) and the Go build cache (GoCache) that
// all daemons under test share; see nativetest.Shared.
func Compiler() ([2]string, error) { return nativetest.Shared() }
