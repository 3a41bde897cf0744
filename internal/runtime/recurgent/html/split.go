package html

import "strings"

// A piece is the text of a compound and the combinator before it.
type piece struct {
	text   string
	joined byte // ' ' or '>'; 0 for the first
}

// split splits a valid selector into alternatives, and each alternative into pieces.
func split(text string) [][]piece {
	var all [][]piece
	var pieces []piece
	start, joined := 0, byte(0)
	end := func(at int) {
		if t := trimBlanks(text[start:at]); t != "" {
			pieces = append(pieces, piece{t, joined})
			joined = ' '
		}
	}
	scan(text, func(i, depth int) {
		if depth > 0 {
			return
		}
		switch c := text[i]; {
		case c == ',':
			end(i)
			all, pieces, start, joined = append(all, pieces), nil, i+1, 0
		case c == '>':
			end(i)
			start, joined = i+1, '>'
		case blank(c) && !besideSibling(text, start, i):
			end(i)
			start = i + 1
		}
	})
	end(len(text))
	return append(all, pieces)
}

// besideSibling reports whether the blank at i is next to a combinator + or ~. These do not end a piece.
func besideSibling(text string, start, i int) bool {
	before, after := trimBlanks(text[start:i]), strings.TrimLeft(text[i:], " \t\r\n\f")
	return strings.HasPrefix(after, "+") || strings.HasPrefix(after, "~") ||
		(strings.HasSuffix(before, "+") || strings.HasSuffix(before, "~")) && !strings.HasSuffix(before, `\+`) &&
			!strings.HasSuffix(before, `\~`)
}

// blank reports whether c is white space in CSS.
func blank(c byte) bool { return strings.IndexByte(" \t\r\n\f", c) >= 0 }

// trimBlanks trims white space, but keeps a blank that a backslash escapes at the end.
func trimBlanks(s string) string {
	trimmed := strings.Trim(s, " \t\r\n\f")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(strings.TrimLeft(s, " \t\r\n\f")) {
		return trimmed + " " // an escaped blank
	}
	return trimmed
}

// scan calls f for each byte outside strings and escapes, with its bracket depth. Brackets themselves count as inside.
func scan(text string, f func(i, depth int)) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i = escapeEnd(text, i)
			continue
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case '(', '[':
			depth++
			f(i, depth)
			continue
		case ')', ']':
			f(i, depth)
			depth--
			continue
		}
		f(i, depth)
	}
}

// escapeEnd returns the index of the last byte of the escape that begins at i: a single character, or up to six hex
// digits with an optional blank.
func escapeEnd(text string, i int) int {
	k := i + 1
	for k < len(text) && k < i+7 && strings.IndexByte("0123456789abcdefABCDEF", text[k]) >= 0 {
		k++
	}
	switch {
	case k == i+1:
		return k
	case k < len(text) && blank(text[k]):
		if text[k] == '\r' && k+1 < len(text) && text[k+1] == '\n' {
			k++
		}
		return k
	}
	return k - 1
}

// nesting returns the greatest bracket depth of a selector.
func nesting(text string) int {
	most := 0
	scan(text, func(_, depth int) { most = max(most, depth) })
	return most
}

// hasPattern reports whether the selector contains a regular expression, which cascadia would accept. Its cost has no
// bound here.
func hasPattern(text string) (found bool) {
	scan(text, func(i, _ int) {
		found = found || strings.HasPrefix(text[i:], "#=") || len(text) > i+8 &&
			strings.EqualFold(text[i:i+8], ":matches")
	})
	return found
}
