package operator

import (
	"context"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/trail"
)

// undos knows which operations undid others.
type undos struct {
	mu     sync.Mutex        // held while the trail is read
	reader *trail.Reader     // guarded by mu
	of     map[string]string // by the id of an entry, the id of the latest entry that undid it; guarded by mu
}

// by returns the id of the entry that undid the given one and is not undone itself, or "".
func (u *undos) by(ctx context.Context, id string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries, anew, err := u.reader.Next(ctx)
	if err != nil {
		return "", err
	}
	if anew {
		u.of = map[string]string{}
	}
	for _, e := range entries {
		u.of[e.Undoes] = e.ID
	}
	times := 0
	// undos can be undone in turn; the bound protects against cycles in an imported trail
	for at := u.of[id]; at != "" && times <= len(u.of); at = u.of[at] {
		times++
	}
	if times%2 == 0 {
		return "", nil
	}
	return u.of[id], nil
}
