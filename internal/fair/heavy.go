package fair

import "context"

// Heavy holds work that keeps a processor busy for long to a number of places, which owners share. Short work needs none.
type Heavy[K comparable] struct {
	places *Share[K]
	from   int
}

// NewHeavy returns a Heavy in which one owner alone may have so many works under way at once; a third more is there for others. Work over fewer
// bytes than from is short.
func NewHeavy[K comparable](alone int64, from int) *Heavy[K] {
	return &Heavy[K]{NewShare[K](alone), from}
}

// Enter waits for a place for the owner's work over so many bytes, which Leave gives back; short work needs none, and to a nil Heavy all work is
// short. It returns the cause of ctx's end when that comes first, and has taken nothing then.
func (h *Heavy[K]) Enter(ctx context.Context, owner K, bytes int) error {
	if h.short(bytes) {
		return nil
	}
	return h.places.Enter(ctx, owner, 1)
}

// Leave ends the work and frees its place.
func (h *Heavy[K]) Leave(owner K, bytes int) {
	if !h.short(bytes) {
		h.places.Leave(owner, 1)
	}
}

func (h *Heavy[K]) short(bytes int) bool { return h == nil || bytes < h.from }
