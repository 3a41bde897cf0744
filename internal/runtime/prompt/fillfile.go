package prompt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// filledFile is the description of a file, with its beginning and end.
type filledFile struct{ Line, Beginning, End string }

func fillFile(x File, most int) filledFile {
	line := fmt.Sprintf("%s: %s, %s, %d bytes, ", plain(x.ID, 64), strconv.Quote(plain(x.Name, 200)),
		plain(x.MediaType, 100), x.Bytes)
	if x.Packed {
		line += "packed by gzip: "
	}
	switch {
	case x.Encoding != "":
		return filledFile{line + textLine(x), visible(spelled(x.Beginning), most), visible(spelled(x.End), most)}
	case len(x.Listing) > 0:
		return filledFile{strings.TrimSuffix(line, ", ") + "; it holds",
			data(strings.Join(x.Listing, "\n"), min(maxListing, most)), ""}
	default:
		return filledFile{line + "no text", "", ""}
	}
}

// lines returns the text with LF line ends. A CR at the end is dropped: the text may have been cut inside a CR LF.
func lines(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\r")
}

// unseen reports whether a reader would not see the character, or would take it for a space. A program that parses the
// text encounters it nevertheless.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && r != ' ' && r != '\u3000' && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs)
}

// spelled replaces unseen characters by their code points, as \uXXXX.
func spelled(text string) string {
	var b strings.Builder
	for _, r := range lines(text) {
		if unseen(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func textLine(x File) string {
	line := "text in " + x.Encoding
	switch x.LineEnd {
	case "\r\n":
		line += ", lines end in CR LF"
	case "\r":
		line += ", lines end in CR, for which OpenText gives LF"
	}
	if strings.ContainsFunc(lines(x.Beginning)+lines(x.End), unseen) {
		line += `, unseen characters as \uXXXX`
	}
	if x.Cut {
		return line + "; it begins"
	}
	return line + "; all of it"
}
