package operator

import (
	"context"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/trail"
)

// undos knows by which operations others were undone.
type undos struct {
	mu     sync.Mutex        // held while the trail is read
	reader *trail.Reader     // guarded by mu
	of     map[string]string // by the id of an entry, that of the last one that undid it; guarded by mu
}

// by returns the id of the entry that undid the one of that id, and is not undone itself; "" where there is none.
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
	// an undo may be undone, and so on; an imported trail may say anything
	for at := u.of[id]; at != "" && times <= len(u.of); at = u.of[at] {
		times++
	}
	if times%2 == 0 {
		return "", nil
	}
	return u.of[id], nil
}
