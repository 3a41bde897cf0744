package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
)

// A userRange is a range of n user ids from first, which are group ids as well.
type userRange struct{ first, n int }

// Ranges that neither systemd nor Linux distributions assign (https://systemd.io/UIDS-GIDS). The small one is for
// containers that have 65,536 users.
var (
	manyUsers = userRange{1879048192, 1 << 24}
	fewUsers  = userRange{60706, 478}
)

// toolUsers returns the user ids of builds if the daemon is root. Each build uses a random one: the kernel counts
// threads by user, so builds sharing a user, even with another daemon's, would share one limit.
var toolUsers = sync.OnceValue(func() userRange {
	for _, kind := range []string{"uid", "gid"} {
		if text, err := os.ReadFile("/proc/self/" + kind + "_map"); err != nil || !manyUsers.mapped(string(text)) {
			return fewUsers
		}
	}
	return manyUsers
})

// any returns a random id of the range.
func (r userRange) any() int { return r.first + rand.IntN(r.n) }

// mapped reports whether one line of the id map covers the whole range (user_namespaces(7)).
func (r userRange) mapped(text string) bool {
	for line := range strings.Lines(text) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && inside <= r.first &&
			r.first+r.n <= inside+n {
			return true
		}
	}
	return false
}
