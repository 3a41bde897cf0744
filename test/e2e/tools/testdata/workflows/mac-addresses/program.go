package tool

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "the file has no header")
	}
	col := map[string]int{}
	for i, h := range header {
		col[strings.TrimSpace(h)] = i
	}
	for _, want := range []string{"Name", "Straße", "PLZ", "Ort"} {
		if _, ok := col[want]; !ok {
			return nil, recurgent.Fail("invalid_input", "the file has no column "+want)
		}
	}
	out, err := call.Create("etiketten.txt", "text/plain; charset=utf-8")
	if err != nil {
		return nil, err
	}
	labels := 0
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		get := func(name string) string {
			if i := col[name]; i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		if get("Straße") == "" {
			continue
		}
		name := get("Name")
		if last, first, ok := strings.Cut(name, ","); ok {
			name = strings.TrimSpace(first) + " " + strings.TrimSpace(last)
		}
		fmt.Fprintf(out, "%s\n%s\n%s %s\n\n", name, get("Straße"), get("PLZ"), get("Ort"))
		labels++
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"labels": labels, "file": out.Ref()}, nil
}
