package tool

import (
	"bufio"
	"encoding/json"
	"strings"

	"recurgent"
)

type reading struct {
	ID      json.Number `json:"id"`
	Store   string      `json:"store"`
	Celsius *float64    `json:"celsius"`
}

type lowest struct {
	Celsius float64     `json:"celsius"`
	ID      json.Number `json:"id"`
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "readings"))
	if err != nil {
		return nil, err
	}
	stores := map[string]lowest{}
	broken := 0
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" {
			continue
		}
		var r reading
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Store == "" {
			broken++
			continue
		}
		if r.Celsius == nil {
			continue
		}
		if old, ok := stores[r.Store]; !ok || *r.Celsius < old.Celsius {
			stores[r.Store] = lowest{*r.Celsius, r.ID}
		}
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	return map[string]any{"stores": stores, "broken": broken}, nil
}
