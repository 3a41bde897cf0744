package tool

import (
	"encoding/csv"
	"io"
	"strings"

	"recurgent"
)

type bad struct {
	Line    int    `json:"line"`
	Article string `json:"article"`
	EAN     string `json:"ean"`
	Reason  string `json:"reason"`
}

func check(ean string) string {
	if ean == "" {
		return "empty"
	}
	for _, c := range ean {
		if c < '0' || c > '9' {
			return "not_digits"
		}
	}
	if len(ean) != 8 && len(ean) != 13 {
		return "length"
	}
	sum, weight := 0, 3
	for i := len(ean) - 2; i >= 0; i-- {
		sum += int(ean[i]-'0') * weight
		weight = 4 - weight
	}
	if (10-sum%10)%10 != int(ean[len(ean)-1]-'0') {
		return "check_digit"
	}
	return ""
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if err == io.EOF {
		return nil, recurgent.Fail("invalid_input", "the file is empty")
	}
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	article, ean := -1, -1
	for i, h := range header {
		switch strings.ToLower(strings.TrimSpace(h)) {
		case "artikel":
			article = i
		case "ean":
			ean = i
		}
	}
	if article < 0 || ean < 0 {
		return nil, recurgent.Fail("invalid_input", "the file must have the columns Artikel and EAN")
	}
	out := []bad{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		if len(row) <= max(article, ean) || strings.TrimSpace(strings.Join(row, "")) == "" {
			continue
		}
		code := strings.TrimSpace(row[ean])
		if reason := check(code); reason != "" {
			line, _ := r.FieldPos(0)
			out = append(out, bad{line, row[article], code, reason})
		}
	}
}
