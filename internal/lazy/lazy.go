// Package lazy creates values on first use. Commands and runners must start within milliseconds and use few of the
// patterns they declare.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the pattern on its first call and returns the result from then on. The
// function may be called concurrently. It panics if the pattern does not compile.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
