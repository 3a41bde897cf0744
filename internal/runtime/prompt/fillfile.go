package prompt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// filledFile is what is said of a file, and how it begins and ends.
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

// lines is a text whose lines end in LF, or that was cut within the end of one.
func lines(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\r")
}

// unseen reports whether nobody sees a character, or takes it for a space. What reads the text meets it.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && r != ' ' && r != '\u3000' && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs)
}

// spelled has the numbers of such characters in their place.
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
