package tool

import (
	"bufio"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type booking struct {
	Date    string `json:"date"`
	Cents   int64  `json:"cents"`
	Name    string `json:"name"`
	Purpose string `json:"purpose"`
}

var (
	tag   = regexp.MustCompile(`^:(\d\d[A-Z]?):(.*)$`)
	line  = regexp.MustCompile(`^(\d{6})(\d{4})?(R?[CD])([A-Z])?(\d+),(\d{0,2})`)
	field = regexp.MustCompile(`\?(\d\d)([^?]*)`)
)

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "statement"))
	if err != nil {
		return nil, err
	}
	type record struct{ tag, text string }
	var records []record
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		text := sc.Text()
		if m := tag.FindStringSubmatch(text); m != nil {
			records = append(records, record{m[1], m[2]})
		} else if text != "-" && len(records) > 0 {
			records[len(records)-1].text += text
		}
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if len(records) == 0 {
		return nil, recurgent.Fail("invalid_input", "the file is no MT940 statement")
	}
	out := []booking{}
	for _, r := range records {
		switch r.tag {
		case "61":
			m := line.FindStringSubmatch(r.text)
			if m == nil {
				return nil, recurgent.Fail("invalid_input", "a line :61: has another form: "+r.text)
			}
			day, err := time.Parse("060102", m[1])
			if err != nil {
				return nil, recurgent.Fail("invalid_input", m[1]+" is no day")
			}
			cents, err := strconv.ParseInt(m[5]+(m[6] + "00")[:2], 10, 64)
			if err != nil {
				return nil, recurgent.Fail("invalid_input", err.Error())
			}
			if m[3] == "D" || m[3] == "RC" {
				cents = -cents
			}
			out = append(out, booking{Date: day.Format("2006-01-02"), Cents: cents})
		case "86":
			if len(out) == 0 {
				continue
			}
			b := &out[len(out)-1]
			fields := field.FindAllStringSubmatch(r.text, -1)
			if fields == nil {
				b.Purpose = strings.TrimSpace(r.text)
				continue
			}
			for _, f := range fields {
				n, err := strconv.Atoi(f[1])
				if err != nil {
					return nil, fmt.Errorf("field %q: %w", f[1], err)
				}
				switch {
				case n >= 20 && n <= 29 || n >= 60 && n <= 63:
					b.Purpose += f[2]
				case n == 32 || n == 33:
					b.Name += f[2]
				}
			}
			b.Purpose, b.Name = strings.TrimSpace(b.Purpose), strings.TrimSpace(b.Name)
		}
	}
	return out, nil
}
