package fair

import "context"

// Heavy limits how many pieces of long-running work keep the processors busy at once, and shares the places among
// owners. Short work needs no place. Its methods may be called concurrently.
type Heavy[K comparable] struct {
	places *Share[K]
	from   int // work over at least this many bytes is long
}

// NewHeavy returns a Heavy in which an owner that is alone may run that many pieces of work at once; a third more is
// reserved for others. Work over fewer than from bytes is short.
func NewHeavy[K comparable](alone int64, from int) *Heavy[K] {
	return &Heavy[K]{NewShare[K](alone), from}
}

// Enter waits until the owner has a place for work over that many bytes. Leave must be called with the same arguments.
// Short work needs no place, and all work is short to a nil Heavy. If ctx ends first, Enter returns its cause and has
// taken nothing.
func (h *Heavy[K]) Enter(ctx context.Context, owner K, bytes int) error {
	if h.short(bytes) {
		return nil
	}
	return h.places.Enter(ctx, owner, 1)
}

// Leave ends work that Enter admitted and frees its place.
func (h *Heavy[K]) Leave(owner K, bytes int) {
	if !h.short(bytes) {
		h.places.Leave(owner, 1)
	}
}

func (h *Heavy[K]) short(bytes int) bool { return h == nil || bytes < h.from }
