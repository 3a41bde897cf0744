package forge

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
)

// placed is an io.ReaderAt over an io.ReadSeeker. It reads at most left bytes in all.
type placed struct {
	io.ReadSeeker
	left int
}

var errMuchRead = errors.New("more of the archive would have to be read")

// ReadAt implements io.ReaderAt. Unlike other implementations, it must not be called concurrently.
func (p *placed) ReadAt(b []byte, at int64) (int, error) {
	if p.left -= len(b); p.left < 0 {
		return 0, errMuchRead
	}
	if _, err := p.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(p, b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Sizes and signatures of the records that end a zip archive: PKWARE's APPNOTE.TXT, 4.3.15 and 4.3.16.
const (
	endBytes     = 22
	maxComment   = 1<<16 - 1
	endMark      = "PK\x05\x06"
	locatorBytes = 20 // precedes the end record if the archive has a ZIP64 directory
	locatorMark  = "PK\x06\x07"
)

// smallDirectory reports whether the bytes are a zip archive whose end record declares a small directory. The record
// may lie: archive/zip reads on while entries follow. A ZIP64 directory never counts as small, because archive/zip
// allocates as many entries as the ZIP64 record declares.
func smallDirectory(r io.ReaderAt, size int64) bool {
	tail := make([]byte, min(size, locatorBytes+endBytes+maxComment))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return false
	}
	at := bytes.LastIndex(tail, []byte(endMark))
	if at < 0 || len(tail)-at < endBytes {
		return false
	}
	wide := at >= locatorBytes && bytes.HasPrefix(tail[at-locatorBytes:], []byte(locatorMark))
	return !wide && binary.LittleEndian.Uint32(tail[at+12:]) <= maxDirectory
}

// Bounds of a workbook's list of sheets.
const (
	maxWorkbook = 1 << 20
	maxSheets   = 20
)

// sheetNames returns the names of the sheets in a spreadsheet's workbook, or as many as could be read.
func sheetNames(f *zip.File) (names []string) {
	in, err := f.Open()
	if err != nil {
		return nil
	}
	defer in.Close()
	d := xml.NewDecoder(io.LimitReader(in, maxWorkbook))
	for len(names) < maxSheets {
		token, err := d.Token()
		if err != nil {
			return names
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "sheet" {
			for _, a := range start.Attr {
				if a.Name.Local == "name" {
					names = append(names, a.Value)
				}
			}
		}
	}
	return names
}
