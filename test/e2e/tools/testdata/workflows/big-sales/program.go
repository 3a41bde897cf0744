package tool

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"recurgent"
)

type sum struct {
	Receipts int   `json:"receipts"`
	Cents    int64 `json:"cents"`
}

var separators = strings.NewReplacer(".", "", ",", "")

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "receipts"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.ReuseRecord = true
	if _, err := r.Read(); err != nil {
		return nil, recurgent.Fail("invalid_input", "the file has no header")
	}
	out := map[string]*sum{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		cents, err := strconv.ParseInt(separators.Replace(row[3]), 10, 64)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "no amount: "+row[3])
		}
		s := out[row[2]]
		if s == nil {
			s = &sum{}
			out[strings.Clone(row[2])] = s
		}
		if cents < 0 {
			s.Receipts--
		} else {
			s.Receipts++
		}
		s.Cents += cents
	}
}
