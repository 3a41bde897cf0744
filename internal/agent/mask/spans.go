package mask

import (
	"cmp"
	"slices"
)

// Masked stands in the place of a masked value.
const Masked = "[masked]"

// inURL is Masked as a part of a URL.
const inURL = "%5Bmasked%5D"

// A span is a part of a text with what to put in its place.
type span struct {
	from, to int
	with     string
}

type spans []span

// replace returns the text with the spans replaced. Of spans that overlap, the one that begins first, and then the longer,
// is replaced together with what the others add behind it.
func replace(text []byte, all spans) []byte {
	slices.SortStableFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from),
			cmp.Compare(b.to, a.to))
	})
	out := make([]byte, 0, len(text)+len(all)*len(inURL))
	last := 0
	for _, s := range all {
		if s.to <= last {
			continue
		}
		if s.from >= last {
			out = append(append(out, text[last:s.from]...), s.with...)
		}
		last = s.to
	}
	return append(out, text[last:]...)
}
