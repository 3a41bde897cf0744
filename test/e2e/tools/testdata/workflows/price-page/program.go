package tool

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"recurgent"
	"recurgent/html"
)

var price = regexp.MustCompile(`(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d{1,2}|-+))?`)

// cents finds the last German price of a text.
func cents(text string) (int64, bool) {
	all := price.FindAllStringSubmatch(text, -1)
	if all == nil {
		return 0, false
	}
	m := all[len(all)-1]
	frac := strings.Trim(m[2], "-")
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ".", "")+(frac + "00")[:2], 10, 64)
	return n, err == nil
}

func Run(call *recurgent.Call) (any, error) {
	url, ok := call.Arg(0, "url").(string)
	if !ok || url == "" {
		return nil, recurgent.Fail("invalid_input", "url must be a string")
	}
	in, err := call.OpenText(call.Arg(1, "prices"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, recurgent.Fail("invalid_input", "prices is no CSV with semicolons")
	}
	number, ours := slices.Index(rows[0], "Nr"), slices.Index(rows[0], "Preis")
	if number < 0 || ours < 0 {
		return nil, recurgent.Fail("invalid_input", "prices must have the columns Nr and Preis")
	}
	resp, err := call.Fetch(url)
	if err != nil {
		return nil, err
	}
	if resp.Status == 404 {
		return nil, recurgent.Fail("not_found", "there is no page "+url)
	}
	if resp.Status >= 400 {
		return nil, recurgent.Fail("fetch_failed", "status "+strconv.Itoa(resp.Status))
	}
	doc, err := html.Parse(resp.Body)
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	theirs := map[string]int64{}
	for _, table := range doc.Find("table").All() {
		for _, rec := range table.Records() {
			if c, ok := cents(rec["Preis"]); ok && rec["Art.-Nr."] != "" {
				theirs[strings.TrimSpace(rec["Art.-Nr."])] = c
			}
		}
	}
	if len(theirs) == 0 {
		return nil, recurgent.Fail("parse_failed", "the page has no table with Art.-Nr. and Preis")
	}
	type row struct {
		Article string `json:"article"`
		Ours    int64  `json:"ours"`
		Theirs  int64  `json:"theirs"`
	}
	out := []row{}
	for _, rec := range rows[1:] {
		if len(rec) <= max(number, ours) {
			continue
		}
		own, ok := cents(rec[ours])
		if !ok {
			continue
		}
		no := strings.TrimSpace(rec[number])
		if t, ok := theirs[no]; ok && t < own {
			out = append(out, row{no, own, t})
		}
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.Article, b.Article) })
	return out, nil
}
