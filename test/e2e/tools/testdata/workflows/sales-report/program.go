package tool

import (
	"encoding/csv"
	"fmt"
	"html"
	"strconv"
	"strings"

	"recurgent"
)

type seller struct {
	count int
	cents int64
}

func euros(c int64) string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d,%02d €", sign, c/100, c%100)
}

func parse(s string) (int64, error) {
	s = strings.ReplaceAll(strings.TrimSpace(s), ".", "")
	whole, frac, _ := strings.Cut(s, ",")
	for len(frac) < 2 {
		frac += "0"
	}
	return strconv.ParseInt(whole+frac, 10, 64)
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "sales"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = '|'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	sellers := map[string]*seller{}
	var names []string
	total := seller{}
	for i, row := range rows {
		if i == 0 {
			continue
		}
		cents, err := parse(row[1])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %q is no amount", i+1, row[1]))
		}
		s := sellers[row[0]]
		if s == nil {
			s = &seller{}
			sellers[row[0]] = s
			names = append(names, row[0])
		}
		s.count++
		s.cents += cents
		total.count++
		total.cents += cents
	}
	f, err := call.Create("umsatz.html", "text/html; charset=utf-8")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(f, "<!DOCTYPE html>\n<html lang=\"de\"><head><meta charset=\"utf-8\"><title>Umsatz</title></head><body>\n<h1>Umsatz</h1>\n<table>\n<tr><th>Verkäufer</th><th>Anzahl</th><th>Umsatz</th></tr>\n")
	for _, name := range names {
		fmt.Fprintf(f, "<tr><td>%s</td><td>%d</td><td>%s</td></tr>\n", html.EscapeString(name), sellers[name].count, euros(sellers[name].cents))
	}
	fmt.Fprintf(f, "<tr><th>Summe</th><th>%d</th><th>%s</th></tr>\n</table>\n</body></html>\n", total.count, euros(total.cents))
	if err := f.Close(); err != nil {
		return nil, err
	}
	return f.Ref(), nil
}
