package tool

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"recurgent"
)

func number(s string) string {
	s = strings.ToUpper(strings.TrimSpace(s))
	if short := strings.TrimLeft(s, "0"); short != "" {
		return short
	}
	return s
}

func stock(call *recurgent.Call, name string, ref any) (map[string]int, error) {
	in, err := call.OpenText(ref)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text := string(data)
	first, _, _ := strings.Cut(text, "\n")
	r := csv.NewReader(strings.NewReader(text))
	if strings.Count(first, ";") > strings.Count(first, ",") {
		r.Comma = ';'
	}
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", name+": "+err.Error())
	}
	out := map[string]int{}
	for i, row := range rows {
		if i == 0 || len(row) < 2 {
			continue
		}
		article := number(row[0])
		if article == "" || article == "SUMME" || article == "GESAMT" {
			continue
		}
		n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(row[1]), ".", ""))
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("%s, row %d: %q is no count", name, i+1, row[1]))
		}
		out[article] += n
	}
	return out, nil
}

func Run(call *recurgent.Call) (any, error) {
	books, err := stock(call, "books", call.Arg(0, "books"))
	if err != nil {
		return nil, err
	}
	counted, err := stock(call, "count", call.Arg(1, "count"))
	if err != nil {
		return nil, err
	}
	var articles []string
	for a := range books {
		articles = append(articles, a)
	}
	for a := range counted {
		if _, ok := books[a]; !ok {
			articles = append(articles, a)
		}
	}
	slices.SortFunc(articles, func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		switch {
		case errX == nil && errY == nil:
			return x - y
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
	out := []map[string]any{}
	for _, a := range articles {
		if books[a] != counted[a] {
			out = append(out, map[string]any{"article": a, "books": books[a], "counted": counted[a]})
		}
	}
	return out, nil
}
