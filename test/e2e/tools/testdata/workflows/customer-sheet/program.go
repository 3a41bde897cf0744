package tool

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"recurgent"
)

type customer struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

func parseCents(s string) (int64, error) {
	s = strings.ReplaceAll(strings.TrimSpace(s), ".", "")
	if s == "" {
		return 0, nil
	}
	whole, frac, _ := strings.Cut(s, ",")
	for len(frac) < 2 {
		frac += "0"
	}
	if len(frac) > 2 {
		return 0, fmt.Errorf("%q is no amount", s)
	}
	return strconv.ParseInt(whole+frac, 10, 64)
}

func Run(call *recurgent.Call) (any, error) {
	n, ok := call.Arg(1, "n").(float64)
	if !ok || n < 0 || n != float64(int(n)) {
		return nil, recurgent.Fail("invalid_input", "n must be a whole number from 0")
	}
	in, err := call.OpenText(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	name := -1
	var amounts []int
	sums := map[string]int64{}
	var order []string
	for line := 1; sc.Scan(); line++ {
		cells := strings.Split(sc.Text(), "\t")
		if line == 1 {
			for i, h := range cells {
				switch strings.TrimSpace(h) {
				case "Kunde":
					name = i
				case "Betrag":
					amounts = append(amounts, i)
				}
			}
			if name < 0 || len(amounts) == 0 {
				return nil, recurgent.Fail("invalid_input", "the file must have the columns Kunde and Betrag")
			}
			continue
		}
		if name >= len(cells) {
			continue
		}
		who := strings.Trim(strings.TrimSpace(cells[name]), `"`)
		if who == "" || who == "Gesamt" || who == "Summe" {
			continue
		}
		if _, seen := sums[who]; !seen {
			order = append(order, who)
			sums[who] = 0
		}
		for _, i := range amounts {
			if i >= len(cells) {
				continue
			}
			c, err := parseCents(cells[i])
			if err != nil {
				return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: %v", line, err))
			}
			sums[who] += c
		}
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	out := make([]customer, 0, len(order))
	for _, who := range order {
		out = append(out, customer{who, sums[who]})
	}
	slices.SortStableFunc(out, func(a, b customer) int { return int(b.Cents - a.Cents) })
	return out[:min(int(n), len(out))], nil
}
