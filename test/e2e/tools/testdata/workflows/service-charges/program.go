package tool

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	var in struct {
		Total *int64 `json:"total"`
		Flats []struct {
			Flat string          `json:"flat"`
			Area json.RawMessage `json:"area"`
			From string          `json:"from"`
			To   string          `json:"to"`
		} `json:"flats"`
	}
	if err := call.Bind(&in); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if in.Total == nil || *in.Total < 0 || len(in.Flats) == 0 {
		return nil, recurgent.Fail("invalid_input", "total must be a sum in cents, flats a list that is not empty")
	}
	weights := make([]*big.Rat, len(in.Flats))
	all := new(big.Rat)
	for i, f := range in.Flats {
		area, ok := new(big.Rat).SetString(strings.Trim(string(f.Area), `"`))
		if !ok || area.Sign() <= 0 {
			return nil, recurgent.Fail("invalid_input", "the area of "+f.Flat+" must be a number above 0")
		}
		from, err := time.Parse("2006-01-02", f.From)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		to, err := time.Parse("2006-01-02", f.To)
		if err != nil || to.Before(from) {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("%s: to must be a day from %s on", f.Flat, f.From))
		}
		days := int64(to.Sub(from).Hours()/24) + 1
		weights[i] = new(big.Rat).Mul(area, big.NewRat(days, 1))
		all.Add(all, weights[i])
	}
	type rest struct {
		index int
		value *big.Rat
	}
	shares := make([]int64, len(weights))
	var rests []rest
	left := *in.Total
	for i, w := range weights {
		exact := new(big.Rat).Quo(new(big.Rat).Mul(big.NewRat(*in.Total, 1), w), all)
		whole := new(big.Int).Quo(exact.Num(), exact.Denom())
		shares[i] = whole.Int64()
		left -= shares[i]
		rests = append(rests, rest{i, exact.Sub(exact, new(big.Rat).SetInt(whole))})
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return b.value.Cmp(a.value) })
	for _, r := range rests[:left] {
		shares[r.index]++
	}
	out := map[string]int64{}
	for i, f := range in.Flats {
		out[f.Flat] += shares[i]
	}
	return out, nil
}
