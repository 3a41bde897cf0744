package tool

import (
	"bufio"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"recurgent"
)

var row = regexp.MustCompile(`^(\S.*?)\s{2,}(\d+)\s+(\d+)\s*$`)

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "orders"))
	if err != nil {
		return nil, err
	}
	open := map[string]int{}
	header := false
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		line := strings.Trim(sc.Text(), "\f\x1a")
		if strings.HasPrefix(line, "Artikel ") {
			header = true
			continue
		}
		m := row.FindStringSubmatch(line)
		if !header || m == nil {
			continue
		}
		ordered, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "no number: "+line)
		}
		delivered, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "no number: "+line)
		}
		open[m[1]] += ordered - delivered
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if !header {
		return nil, recurgent.Fail("invalid_input", "the file is no list of orders")
	}
	type item struct {
		Article string `json:"article"`
		Open    int    `json:"open"`
	}
	out := []item{}
	for name, n := range open {
		if n > 0 {
			out = append(out, item{name, n})
		}
	}
	slices.SortFunc(out, func(a, b item) int {
		if a.Open != b.Open {
			return b.Open - a.Open
		}
		return strings.Compare(a.Article, b.Article)
	})
	return out, nil
}
