package runtime

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
)

// placed reads at any place of what can be sought in.
type placed struct{ io.ReadSeeker }

// ReadAt implements io.ReaderAt. It is for one goroutine.
func (p placed) ReadAt(b []byte, at int64) (int, error) {
	if _, err := p.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(p, b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Of the record that ends a zip archive: PKWARE's APPNOTE.TXT, 4.3.16.
const (
	endBytes   = 22
	maxComment = 1<<16 - 1
	endMark    = "PK\x05\x06"
)

// smallDirectory reports whether the bytes are an archive whose directory may be read: archive/zip reads all of it.
func smallDirectory(r io.ReaderAt, size int64) bool {
	tail := make([]byte, min(size, endBytes+maxComment))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return false
	}
	at := bytes.LastIndex(tail, []byte(endMark))
	if at < 0 || len(tail)-at < endBytes {
		return false
	}
	return binary.LittleEndian.Uint32(tail[at+12:]) <= maxDirectory // one in the 64-bit form says 0xffffffff
}

// Bounds of a workbook's list of sheets.
const (
	maxWorkbook = 1 << 20
	maxSheets   = 20
)

// sheetNames are those of a spreadsheet's workbook.
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
