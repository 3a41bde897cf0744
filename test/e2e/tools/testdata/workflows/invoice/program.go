package tool

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strconv"

	"recurgent"
)

type number struct{ text string }

// UnmarshalJSON takes a number or a text with one, as it stands.
func (n *number) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	if _, ok := new(big.Rat).SetString(s); !ok {
		return fmt.Errorf("%s is no number", data)
	}
	n.text = s
	return nil
}

func (n number) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(n.text)
	if !ok {
		return new(big.Rat)
	}
	return r
}

// round rounds to an integer, halves away from 0.
func round(r *big.Rat) int64 {
	twice := new(big.Int).Mul(r.Num(), big.NewInt(2))
	den := r.Denom()
	if r.Sign() >= 0 {
		twice.Add(twice, den)
	} else {
		twice.Sub(twice, den)
	}
	return twice.Quo(twice, new(big.Int).Mul(den, big.NewInt(2))).Int64()
}

func euros(c int64) string { return fmt.Sprintf("%d.%02d", c/100, c%100) }

func Run(call *recurgent.Call) (any, error) {
	var in struct {
		Number   string `json:"number"`
		Customer string `json:"customer"`
		Items    []struct {
			Name  string `json:"name"`
			Count number `json:"count"`
			Price number `json:"price"`
			Tax   number `json:"tax"`
		} `json:"items"`
		Discount number `json:"discount"`
	}
	in.Discount.text = "0"
	if err := call.Bind(&in); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if in.Number == "" || len(in.Items) == 0 {
		return nil, recurgent.Fail("invalid_input", "an invoice has a number and items")
	}
	hundred := big.NewRat(100, 1)
	byRate := map[int]int64{}
	lines := ""
	for i, it := range in.Items {
		price := new(big.Rat).Mul(it.Price.rat(), hundred)
		if !price.IsInt() {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("item %d: the price has parts of cents", i+1))
		}
		rate, err := strconv.Atoi(it.Tax.text)
		if err != nil || rate < 0 || rate > 100 {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("item %d: the tax is no percentage", i+1))
		}
		sum := round(new(big.Rat).Mul(price, it.Count.rat()))
		byRate[rate] += sum
		lines += fmt.Sprintf("%-20s %11s x %10s %12s\n", it.Name, it.Count.text, euros(round(price)), euros(sum))
	}
	keep := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(in.Discount.rat(), hundred))
	var rates []int
	for rate := range byRate {
		rates = append(rates, rate)
	}
	sort.Ints(rates)
	var net, taxes int64
	tax := map[string]int64{}
	taxLines := ""
	for _, rate := range rates {
		base := round(new(big.Rat).Mul(big.NewRat(byRate[rate], 1), keep))
		t := round(new(big.Rat).Mul(big.NewRat(base, 1), big.NewRat(int64(rate), 100)))
		net, taxes = net+base, taxes+t
		tax[strconv.Itoa(rate)] = t
		taxLines += fmt.Sprintf("%-45s %12s\n", fmt.Sprintf("USt %d %%", rate), euros(t))
	}
	f, err := call.Create("RECHNUNG-"+in.Number+".txt", "text/plain; charset=utf-8")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(f, "Rechnung %s\n%s\n\n%s\n%-45s %12s\n%s%-45s %12s\n", in.Number, in.Customer, lines, "Netto", euros(net), taxLines, "Summe", euros(net+taxes))
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"net": net, "tax": tax, "gross": net + taxes, "text": f.Ref()}, nil
}
