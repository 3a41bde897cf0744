package tool

import (
	"encoding/json"
	"strconv"

	"recurgent"
)

type line struct {
	SKU   json.RawMessage `json:"sku"`
	Count int             `json:"count"`
}

func Run(call *recurgent.Call) (any, error) {
	var in struct {
		Order struct {
			ID    json.Number `json:"id"`
			Items []struct {
				SKU      json.RawMessage `json:"sku"`
				Quantity int             `json:"quantity"`
			} `json:"line_items"`
		} `json:"order"`
		URL string `json:"url"`
	}
	if err := call.Bind(&in); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if in.Order.ID == "" || in.URL == "" {
		return nil, recurgent.Fail("invalid_input", "an order has an id, and goes to a url")
	}
	out := struct {
		Order json.Number `json:"order"`
		Lines []line      `json:"lines"`
	}{in.Order.ID, []line{}}
	for _, it := range in.Order.Items {
		if it.Quantity != 0 {
			out.Lines = append(out.Lines, line{it.SKU, it.Quantity})
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	resp, err := call.FetchWith(recurgent.Request{URL: in.URL, Method: "POST", Header: map[string]string{"Content-Type": "application/json"}, Body: string(body)})
	if err != nil {
		return nil, err
	}
	if resp.Status >= 400 {
		return nil, recurgent.Fail("fetch_failed", "the partner answered "+strconv.Itoa(resp.Status))
	}
	return map[string]any{"id": in.Order.ID, "lines": len(out.Lines)}, nil
}
