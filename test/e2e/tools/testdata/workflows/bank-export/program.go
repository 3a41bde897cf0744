package tool

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type month struct {
	Month   string `json:"month"`
	Income  int64  `json:"income"`
	Expense int64  `json:"expense"`
}

// cents reads a German amount such as -1.234,56.
func cents(s string) (int64, error) {
	s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "EUR"))
	s = strings.ReplaceAll(s, ".", "")
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimLeft(s, "+-")
	whole, frac, _ := strings.Cut(s, ",")
	if len(frac) > 2 {
		return 0, errors.New("more than two decimals")
	}
	n, err := strconv.ParseInt(whole+(frac + "00")[:2], 10, 64)
	if neg {
		n = -n
	}
	return n, err
}

func Run(call *recurgent.Call) (any, error) {
	ref := call.Arg(0, "file")
	if ref == nil {
		return nil, recurgent.Fail("invalid_input", "file is missing")
	}
	in, err := call.OpenText(ref)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	day, amount := -1, -1
	byMonth := map[string]*month{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "the file is not CSV: "+err.Error())
		}
		if day < 0 {
			d, a := -1, -1
			for i, name := range row {
				name = strings.TrimSpace(name)
				if name == "Buchungstag" {
					d = i
				} else if strings.HasPrefix(name, "Betrag") {
					a = i
				}
			}
			if d >= 0 && a >= 0 {
				day, amount = d, a
			}
			continue
		}
		if len(row) <= max(day, amount) {
			continue
		}
		t, err := time.Parse("02.01.2006", strings.TrimSpace(row[day]))
		if err != nil {
			continue // a total, or an empty row
		}
		c, err := cents(row[amount])
		if err != nil {
			line, _ := r.FieldPos(amount)
			return nil, recurgent.Fail("invalid_input", "line "+strconv.Itoa(line)+": "+strconv.Quote(row[amount])+" is no amount")
		}
		key := t.Format("2006-01")
		m := byMonth[key]
		if m == nil {
			m = &month{Month: key}
			byMonth[key] = m
		}
		if c >= 0 {
			m.Income += c
		} else {
			m.Expense -= c
		}
	}
	if day < 0 {
		return nil, recurgent.Fail("invalid_input", "the file has no columns Buchungstag and Betrag")
	}
	out := []month{}
	for _, m := range byMonth {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b month) int { return strings.Compare(a.Month, b.Month) })
	return out, nil
}
