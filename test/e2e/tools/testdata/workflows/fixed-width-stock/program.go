package tool

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"recurgent"
)

func number(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if digits, ok := strings.CutSuffix(s, "-"); ok {
		s = "-" + digits
	}
	return strconv.ParseInt(s, 10, 64)
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	sums := map[string]int64{}
	sc := bufio.NewScanner(in)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimRight(sc.Text(), "\x1a")
		if strings.TrimSpace(text) == "" {
			continue
		}
		cols := []rune(text)
		if len(cols) < 45 {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d has %d columns, not 45", line, len(cols)))
		}
		count, err := number(string(cols[31:37]))
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: the count %q is no number", line, string(cols[31:37])))
		}
		price, err := number(string(cols[37:45]))
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: the price %q is no number", line, string(cols[37:45])))
		}
		sums[strings.TrimSpace(string(cols[28:31]))] += count * price
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	return sums, nil
}
