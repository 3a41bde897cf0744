package mask

import (
	"cmp"
	"slices"
)

// Masked replaces a masked value.
const Masked = "[masked]"

// inURL replaces a masked part of a URL: Masked, percent-encoded.
const inURL = "%5Bmasked%5D"

// A span is a part of a text with its replacement.
type span struct {
	from, to int
	with     string
}

type spans []span

// replace returns the text with the spans replaced. Overlapping spans are replaced as one, with the replacement of the
// one that begins first, or of the longer one if they begin together.
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
