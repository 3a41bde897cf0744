package tool

import (
	"bufio"
	"regexp"
	"slices"
	"strings"

	"recurgent"
)

var (
	letters = strings.NewReplacer("a\u0308", "ae", "o\u0308", "oe", "u\u0308", "ue", "ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "é", "e", "è", "e")
	street  = regexp.MustCompile(`str(asse)?\b\.?`)
	other   = regexp.MustCompile(`[^a-z0-9]+`)
)

func plain(s string) string { return letters.Replace(strings.ToLower(s)) }

func name(s string) string {
	s = plain(s)
	if last, first, ok := strings.Cut(s, ","); ok {
		s = first + " " + last
	}
	words := strings.Fields(other.ReplaceAllString(s, " "))
	slices.Sort(words)
	return strings.Join(words, " ")
}

func address(s string) string {
	return other.ReplaceAllString(street.ReplaceAllString(plain(s), "str"), "")
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "customers"))
	if err != nil {
		return nil, err
	}
	groups := map[string][]string{}
	var order []string
	sc := bufio.NewScanner(in)
	for first := true; sc.Scan(); first = false {
		cells := strings.Split(sc.Text(), "\t")
		if first || len(cells) < 5 {
			continue
		}
		key := name(cells[1]) + "|" + address(cells[2]) + "|" + strings.TrimLeft(strings.TrimSpace(cells[3]), "0") + "|" + address(cells[4])
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], strings.TrimSpace(cells[0]))
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	out := [][]string{}
	for _, key := range order {
		if len(groups[key]) > 1 {
			out = append(out, groups[key])
		}
	}
	return out, nil
}
