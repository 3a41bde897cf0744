package tool

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	base, ok := call.Arg(0, "url").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "url must be a string")
	}
	address, err := url.Parse(base)
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	type order struct {
		ID    int64     `json:"id"`
		State string    `json:"state"`
		At    time.Time `json:"at"`
	}
	var open []order
	query := address.Query()
	query.Set("limit", "100")
	for {
		address.RawQuery = query.Encode()
		resp, err := call.FetchWith(recurgent.Request{URL: address.String(), Retry: 5})
		if err != nil {
			return nil, err
		}
		if resp.Status == 404 {
			return nil, recurgent.Fail("not_found", "there is nothing at "+base)
		}
		if resp.Status >= 400 {
			return nil, recurgent.Fail("fetch_failed", "the shop answered "+strconv.Itoa(resp.Status))
		}
		var page struct {
			Items []order `json:"items"`
			Next  *string `json:"next"`
		}
		if err := json.Unmarshal([]byte(resp.Body), &page); err != nil {
			return nil, recurgent.Fail("parse_failed", "the shop's answer: "+err.Error())
		}
		for _, o := range page.Items {
			if o.State == "open" {
				open = append(open, o)
			}
		}
		if page.Next == nil || *page.Next == "" {
			break
		}
		query.Set("cursor", *page.Next)
	}
	slices.SortStableFunc(open, func(a, b order) int { return a.At.Compare(b.At) })
	ids := []int64{}
	for _, o := range open {
		ids = append(ids, o.ID)
	}
	return ids, nil
}
