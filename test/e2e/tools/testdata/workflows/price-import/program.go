package tool

import (
	"bytes"
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	ref := call.Arg(0, "file")
	raw, err := call.Open(ref)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(raw, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head = bytes.TrimLeft(head[:n], "\xef\xbb\xbf \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, recurgent.Fail("invalid_input", "the file is a spreadsheet or another zip archive, not CSV")
	case bytes.HasPrefix(head, []byte("%PDF")):
		return nil, recurgent.Fail("invalid_input", "the file is a PDF, not CSV")
	case bytes.HasPrefix(head, []byte("<")):
		return nil, recurgent.Fail("invalid_input", "the file is a page or XML, not CSV")
	case len(head) == 0:
		return nil, recurgent.Fail("invalid_input", "the file is empty")
	}
	in, err := call.OpenText(ref)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	number, price := -1, -1
	out := map[string]int64{}
	for i, row := range rows {
		if number < 0 {
			for j, h := range row {
				switch {
				case strings.HasPrefix(h, "Artikel"):
					number = j
				case strings.HasPrefix(h, "EK"):
					price = j
				}
			}
			if price < 0 {
				number = -1
			}
			continue
		}
		if len(row) <= max(number, price) {
			continue
		}
		text := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(row[price]), "€"))
		whole, frac, _ := strings.Cut(strings.ReplaceAll(text, ".", ""), ",")
		cents, err := strconv.ParseInt(whole+(frac + "00")[:2], 10, 64)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "row "+strconv.Itoa(i+1)+": "+strconv.Quote(row[price])+" is no price")
		}
		out[strings.TrimSpace(row[number])] = cents
	}
	if number < 0 {
		return nil, recurgent.Fail("invalid_input", "the file has no columns Artikelnummer and EK")
	}
	return out, nil
}
