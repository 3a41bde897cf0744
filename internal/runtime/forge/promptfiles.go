package forge

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Bounds of what a model sees of files.
const (
	maxShownFiles = 4
	maxListed     = 40      // entries of an archive
	maxDirectory  = 1 << 20 // bytes of an archive's directory, which is read into memory
	maxArchive    = 3 << 20 // bytes that are read from an archive in total
	maxUnpacked   = 64 << 10
	// bytes read from a file's end, of which only the last lines are shown: a secret is recognised by the text before
	// it
	maskedEnd = 16 << 10
)

// fileRefs returns the ids of the files that the call's arguments refer to, each once.
func fileRefs(c *call.Call) (ids []string) {
	for _, raw := range append(c.Args[:len(c.Args):len(c.Args)], c.Kwargs) {
		for _, id := range agent.FileRefs(raw) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// shownFiles describes the files that the call's arguments refer to, with their beginnings, secrets masked. Files that
// cannot be read are left out.
func shownFiles(ctx context.Context, c *call.Call, ids []string) (out []prompt.File) {
	if c.Env.Files == nil || c.Policy.FilePreviewBytes == 0 {
		return nil
	}
	for _, id := range ids[:min(len(ids), maxShownFiles)] {
		f, err := (&attempt.Host{For: c}).OpenFile(ctx, id)
		if err != nil {
			continue
		}
		if f, err := describeFile(c, f); err == nil {
			out = append(out, f)
		}
		_ = f.Close() // it was only read
	}
	return out
}

// describeFile shows a text by its beginning and end, a compressed text by its beginning, and an archive by its
// entries.
func describeFile(c *call.Call, r *sandbox.OpenFile) (prompt.File, error) {
	f := prompt.File{ID: r.ID, Name: c.Mask(r.Name), MediaType: r.MediaType, Bytes: r.Bytes}
	var err error
	if f.Encoding, err = charsets.GuessFrom(r, r.MediaType); err != nil {
		return f, err
	}
	if f.Encoding != "" {
		err = showText(c, &f, r)
		return f, err
	}
	if inside := unpacked(r); len(inside) > 0 {
		f.Packed, f.Encoding = true, encodingInside(inside)
		if f.Encoding != "" {
			beginning, err := beginningOf(&f, bytes.NewReader(inside), c.Policy.FilePreviewBytes)
			f.Beginning, _ = c.MaskDocument(beginning, "")
			return f, err
		}
	}
	for _, line := range listing(r, r.Bytes) {
		f.Listing = append(f.Listing, c.Mask(line))
	}
	return f, nil
}

// showText shows the beginning of a text and, if it is cut, its end: there, tables have totals and blank rows.
func showText(c *call.Call, f *prompt.File, r io.ReadSeeker) error {
	most := c.Policy.FilePreviewBytes
	beginning, err := beginningOf(f, r, most-most/8)
	if err != nil {
		return err
	}
	var end string
	if f.Cut && strings.Contains(beginning, "\n") { // otherwise, the names of columns may be missing
		if end, err = endOf(f, r); err != nil {
			return err
		}
	}
	f.Beginning, end = c.MaskDocument(beginning, end)
	// start at a line, not within a character or a word
	if _, lines, ok := strings.Cut(end[max(0, len(end)-most/8):], "\n"); ok {
		f.End = lines
	}
	return nil
}

// endOf returns the end of a text, in more bytes than are shown.
func endOf(f *prompt.File, r io.ReadSeeker) (string, error) {
	from := max(0, f.Bytes-maskedEnd) &^ 1 // aligned to the 2-byte characters of UTF-16
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		return "", err
	}
	text, err := charsets.NewReader(r, f.Encoding)
	if err != nil {
		return "", err
	}
	tail, err := io.ReadAll(text)
	return strings.ToValidUTF8(string(tail), ""), err
}

// beginningOf returns up to most bytes of decoded text.
func beginningOf(f *prompt.File, r io.Reader, most int) (string, error) {
	text, err := charsets.NewReader(r, f.Encoding)
	if err != nil {
		return "", err
	}
	beginning := make([]byte, most+1)
	n, err := io.ReadFull(text, beginning)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	f.Cut, f.LineEnd = n > most, text.LineEnd()
	return strings.ToValidUTF8(string(beginning[:min(n, most)]), ""), nil
}

// unpacked returns the beginning of a gzip file's content, or nothing for other files.
func unpacked(r io.ReadSeeker) []byte {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil
	}
	inside, _ := io.ReadAll(io.LimitReader(z, maxUnpacked)) // a truncated or damaged file shows what can be read
	return inside
}

// encodingInside returns the character set of a file's content, or "" if it is not text.
func encodingInside(beginning []byte) string {
	name, err := charsets.Guess(bytes.NewReader(beginning), "")
	if err != nil {
		return ""
	}
	return name
}

// listing returns the names of an archive's entries, or of a spreadsheet's sheets, and nothing for other files. It
// bounds what it reads, whatever the archive declares.
func listing(r io.ReadSeeker, size int64) (lines []string) {
	at := &placed{r, maxArchive}
	if !smallDirectory(at, size) {
		return nil
	}
	z, err := zip.NewReader(at, size)
	if err != nil {
		return nil
	}
	for _, f := range z.File {
		if len(lines) == maxListed {
			return append(lines, fmt.Sprintf("and %d more", len(z.File)-maxListed))
		}
		if f.Name == "xl/workbook.xml" {
			if sheets := sheetNames(f); len(sheets) > 0 {
				return []string{"sheets: " + strings.Join(sheets, ", ")}
			}
		}
		lines = append(lines, fmt.Sprintf("%s (%d bytes)", path.Clean("/" + f.Name)[1:], f.UncompressedSize64))
	}
	return lines
}
