package eject

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"io"
	"regexp"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
)

// Bounds of the search for secrets in packed data.
const (
	maxUnpacked = 16 << 20 // bytes in total
	maxPackings = 3        // nesting depth
	maxEntries  = 10_000   // per archive
)

const unsearched = "it has an archive that is too large to be searched for secrets"

// searched returns a reason if the bytes of a file or answer contain a secret, or may, otherwise "". It unpacks
// compressed data and archives.
func searched(data []byte, rules *mask.Rules) (reason string) {
	return (&search{rules: rules, room: maxUnpacked}).in(data, 0)
}

// A search looks for secrets in one file or answer.
type search struct {
	rules *mask.Rules
	room  int64 // bytes that may still be unpacked
}

// in searches data: text after decoding it, archives and compressed data after unpacking them.
func (s *search) in(data []byte, depth int) (reason string) {
	name, err := charsets.Guess(bytes.NewReader(data), "")
	if err != nil {
		return unsearched
	}
	if name != "" {
		return s.text(data, name)
	}
	if s.hides(string(data)) {
		return secretReason
	}
	if depth == maxPackings {
		return unsearched
	}
	if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
		return s.archive(z, depth)
	}
	if z := unpacking(data); z != nil {
		return s.unpacked(z, depth)
	}
	return ""
}

// unpacking returns a reader of the unpacked data, or nil if data is not compressed.
func unpacking(data []byte) io.Reader {
	if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		return z
	}
	if bytes.HasPrefix(data, []byte("BZh")) {
		return bzip2.NewReader(bytes.NewReader(data))
	}
	if z, err := zlib.NewReader(bytes.NewReader(data)); err == nil {
		return z
	}
	return nil
}

// archive searches the names, comments and contents of a zip archive.
func (s *search) archive(z *zip.Reader, depth int) (reason string) {
	if len(z.File) > maxEntries {
		return unsearched
	}
	for _, f := range z.File {
		if s.hides(f.Name) || s.hides(f.Comment) {
			return secretReason
		}
		r, err := f.Open()
		if err != nil {
			continue // unreadable for other readers as well
		}
		reason := s.unpacked(r, depth)
		_ = r.Close() // it was only read
		if reason != "" {
			return reason
		}
	}
	return ""
}

// unpacked searches packed data as far as it can be unpacked.
func (s *search) unpacked(r io.Reader, depth int) (reason string) {
	// Damaged data is searched up to the damage.
	data, _ := io.ReadAll(io.LimitReader(r, s.room+1))
	if s.room -= int64(len(data)); s.room < 0 {
		return unsearched
	}
	return s.in(data, depth+1)
}

// text searches text, decoded from its character set.
func (s *search) text(data []byte, charset string) (reason string) {
	r, err := charsets.NewReader(bytes.NewReader(data), charset)
	if err != nil {
		return unsearched
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return unsearched
	}
	if s.hides(string(text)) || s.secretColumn(string(text)) {
		return secretReason
	}
	return ""
}

// hides reports whether the text contains a secret or a mask.
func (s *search) hides(text string) bool {
	return strings.Contains(text, mask.Masked) || s.rules.Text(text) != text
}

var betweenColumns = regexp.MustCompile(`[,;|\t]`)

// secretColumn reports whether a table has a column whose name marks secrets.
func (s *search) secretColumn(text string) bool {
	head, rows, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rows == "" {
		return false
	}
	for _, name := range betweenColumns.Split(head, -1) {
		if name = strings.Trim(name, " \r\"'"); name != "" && s.rules.Secret(name) {
			return true
		}
	}
	return false
}
