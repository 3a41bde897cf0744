package tool

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type debtor struct {
	number int
	name   string
	list   strings.Builder
	cents  int64
}

func euros(c int64) string { return fmt.Sprintf("%d,%02d", c/100, c%100) }

func Run(call *recurgent.Call) (any, error) {
	text, _ := call.Arg(2, "today").(string)
	today, err := time.Parse("2006-01-02", text)
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "today must be YYYY-MM-DD")
	}
	in, err := call.OpenText(call.Arg(0, "template"))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	template := strings.ReplaceAll(string(data), "\r\n", "\n")
	if !strings.Contains(template, "{NAME}") {
		return nil, recurgent.Fail("invalid_input", "the template has no {NAME}")
	}
	list, err := call.OpenText(call.Arg(1, "invoices"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(list)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	byNumber := map[int]*debtor{}
	for i, row := range rows {
		if i == 0 || len(row) < 5 || strings.TrimSpace(row[0]) == "" {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %q is no customer", i+1, row[0]))
		}
		due, err := time.Parse("2.1.2006", strings.TrimSpace(row[3]))
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %q is no day", i+1, row[3]))
		}
		whole, frac, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(row[4]), ".", ""), ",")
		for len(frac) < 2 {
			frac += "0"
		}
		cents, err := strconv.ParseInt(whole+frac, 10, 64)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %q is no amount", i+1, row[4]))
		}
		if !due.Before(today) {
			continue
		}
		d := byNumber[n]
		if d == nil {
			d = &debtor{number: n, name: strings.TrimSpace(row[1])}
			byNumber[n] = d
		}
		fmt.Fprintf(&d.list, "%s %s %s €\n", row[2], due.Format("02.01.2006"), euros(cents))
		d.cents += cents
	}
	var numbers []int
	for n := range byNumber {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	out := []any{}
	for _, n := range numbers {
		d := byNumber[n]
		f, err := call.Create(fmt.Sprintf("MAHNUNG-%d.txt", n), "text/plain; charset=utf-8")
		if err != nil {
			return nil, err
		}
		letter := strings.NewReplacer("{NAME}", d.name, "{LISTE}", d.list.String(), "{SUMME}", euros(d.cents)).Replace(template)
		if _, err := f.WriteString(letter); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
