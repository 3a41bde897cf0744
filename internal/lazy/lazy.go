// Package lazy has what is made when it is first used. Commands and runners start in milliseconds, and use few of the patterns that they hold.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the pattern's regular expression. The function may be called concurrently, and panics if the pattern does not compile.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
