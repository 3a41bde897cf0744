package interp

import "runtime"

// runtimeTypeAssertionError is the runtime's own error type: programs see it in recover.
type runtimeTypeAssertionError = runtime.TypeAssertionError

// plainError is a runtime error of ours with Go's text.
type plainError string

func (e plainError) Error() string { return string(e) }
func (plainError) RuntimeError()   {}

type wrapError string

func (e wrapError) Error() string { return string(e) }
func (wrapError) RuntimeError()   {}
