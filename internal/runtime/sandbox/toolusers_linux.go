package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
)

// A userRange is a range of user numbers, which are group numbers, too.
type userRange struct{ first, n int }

// Ranges that neither systemd nor Linux distributions give to anybody (https://systemd.io/UIDS-GIDS). The small one is for containers that have 65,536 users.
var (
	manyUsers = userRange{1879048192, 1 << 24}
	fewUsers  = userRange{60706, 478}
)

// toolUsers are the users of builds where the daemon is root. Each build takes any of them: the kernel counts the threads of a user, and those of one build, or of another daemon's,
// would be missing in the next.
var toolUsers = sync.OnceValue(func() userRange {
	for _, kind := range []string{"uid", "gid"} {
		if text, err := os.ReadFile("/proc/self/" + kind + "_map"); err != nil || !manyUsers.mapped(string(text)) {
			return fewUsers
		}
	}
	return manyUsers
})

func (r userRange) any() int { return r.first + rand.IntN(r.n) }

// mapped reports whether a line of the map has all of them (user_namespaces(7)).
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
