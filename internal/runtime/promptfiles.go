package runtime

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Bounds of what a model sees of files.
const (
	maxShownFiles = 4
	maxListed     = 40      // entries of an archive
	maxDirectory  = 1 << 20 // bytes of an archive's directory: it is read into memory
	maxArchive    = 3 << 20 // bytes that are read of an archive in all
)

// shownFiles describes the files that the call's arguments refer to, with their beginnings, secrets masked. A file that cannot be read is left out.
func (c *opened) shownFiles(ctx context.Context) (out []prompt.File) {
	if c.r.o.Files == nil || c.policy.FilePreviewBytes == 0 {
		return nil
	}
	var ids []string
	for _, raw := range append(c.args[:len(c.args):len(c.args)], c.kwargs) {
		ids = append(ids, agent.FileRefs(raw)...)
	}
	for _, id := range ids[:min(len(ids), maxShownFiles)] {
		f, err := (&host{call: c}).OpenFile(ctx, id)
		if err != nil {
			continue
		}
		if f, err := c.describeFile(f); err == nil {
			out = append(out, f)
		}
		_ = f.Close() // it was only read
	}
	return out
}

func (c *opened) describeFile(r *sandbox.OpenFile) (prompt.File, error) {
	f := prompt.File{ID: r.ID, Name: c.mask(r.Name), MediaType: r.MediaType, Bytes: r.Bytes}
	var err error
	if f.Encoding, err = charsets.GuessFrom(r, r.MediaType); err != nil {
		return f, err
	}
	if f.Encoding == "" {
		for _, line := range listing(r, r.Bytes) {
			f.Listing = append(f.Listing, c.mask(line))
		}
		return f, nil
	}
	text, err := charsets.NewReader(r, f.Encoding)
	if err != nil {
		return f, err
	}
	most := c.policy.FilePreviewBytes
	beginning := make([]byte, most+1)
	n, err := io.ReadFull(text, beginning)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return f, err
	}
	f.Beginning, f.Cut = c.mask(strings.ToValidUTF8(string(beginning[:min(n, most)]), "")), n > most
	return f, nil
}

// listing names what is in an archive, and the sheets of a spreadsheet; nothing for other files. What it reads is bounded, whatever the archive says.
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
