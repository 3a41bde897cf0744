package tool

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"recurgent"
)

type result struct {
	Patient string `json:"patient"`
	Test    string `json:"test"`
	Value   string `json:"value"`
	Unit    string `json:"unit"`
	Range   string `json:"range"`
	mark    string
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "report"))
	if err != nil {
		return nil, err
	}
	out := []result{}
	var patient string
	var current *result
	finish := func() {
		if current != nil && current.mark != "" {
			out = append(out, *current)
		}
		current = nil
	}
	sc := bufio.NewScanner(in)
	for line := 1; sc.Scan(); line++ {
		text := sc.Text()
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(text) < 7 {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d is no record of LDT", line))
		}
		if _, err := strconv.Atoi(text[:7]); err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d is no record of LDT", line))
		}
		value := text[7:]
		switch text[3:7] {
		case "3101":
			finish()
			patient = value
		case "8000":
			finish()
		case "8410":
			finish()
			current = &result{Patient: patient, Test: value}
		case "8420":
			if current != nil {
				current.Value = value
			}
		case "8421":
			if current != nil {
				current.Unit = value
			}
		case "8460":
			if current != nil {
				current.Range = value
			}
		case "8422":
			if current != nil {
				current.mark = strings.TrimSpace(value)
			}
		}
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	finish()
	return out, nil
}
