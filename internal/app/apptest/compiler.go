package apptest

import "github.com/recurgentd/recurgentd/internal/runtime/native/nativetest"

// Compiler returns the directory in which all daemons under test keep what they compile (app.Options.CompilerDir), and the go command's cache (GoCache), as nativetest.Shared has them.
func Compiler() ([2]string, error) { return nativetest.Shared() }
