package tool

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"recurgent"
	"recurgent/html"
)

type link struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type title struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
}

type feed struct {
	Items []struct {
		Title []title `xml:"title"`
		Link  string  `xml:"link"`
		Date  string  `xml:"pubDate"`
	} `xml:"channel>item"`
	Entries []struct {
		Title   string `xml:"title"`
		Links   []link `xml:"link"`
		Updated string `xml:"updated"`
	} `xml:"entry"`
}

var zones = map[string]string{"GMT": "+0000", "UT": "+0000", "UTC": "+0000", "Z": "+0000", "EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700", "CET": "+0100", "CEST": "+0200"}

func parseDate(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if _, rest, ok := strings.Cut(s, ","); ok {
		s = strings.TrimSpace(rest)
	}
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		if z, ok := zones[strings.ToUpper(s[i+1:])]; ok {
			s = s[:i+1] + z
		}
	}
	t, err := time.Parse("2 Jan 2006 15:04:05 -0700", s)
	if err != nil {
		t, err = time.Parse("2 Jan 2006 15:04 -0700", s)
	}
	return t, err
}

func Run(call *recurgent.Call) (any, error) {
	urls, ok := call.Arg(0, "urls").([]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "urls must be a list")
	}
	text, _ := call.Arg(1, "since").(string)
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "since must be a time of RFC 3339")
	}
	type item struct {
		Title string `json:"title"`
		URL   string `json:"url"`
		At    string `json:"at"`
		time  time.Time
	}
	out := []item{}
	for _, u := range urls {
		url, ok := u.(string)
		if !ok {
			return nil, recurgent.Fail("invalid_input", "urls must be a list of strings")
		}
		resp, err := call.Fetch(url)
		if err != nil {
			return nil, err
		}
		if resp.Status == 404 {
			return nil, recurgent.Fail("not_found", "there is no feed "+url)
		}
		if resp.Status >= 400 {
			return nil, recurgent.Fail("fetch_failed", url+" answered "+strconv.Itoa(resp.Status))
		}
		var f feed
		if err := xml.Unmarshal([]byte(resp.Body), &f); err != nil {
			return nil, recurgent.Fail("parse_failed", url+" is no feed: "+err.Error())
		}
		add := func(title, link, date string) error {
			at, err := parseDate(date)
			if err != nil {
				return recurgent.Fail("parse_failed", url+" has the date "+strconv.Quote(date))
			}
			if !at.Before(since) {
				out = append(out, item{strings.TrimSpace(html.Text(title)), strings.TrimSpace(link), at.UTC().Format(time.RFC3339), at})
			}
			return nil
		}
		for _, it := range f.Items {
			var name string
			for _, t := range it.Title {
				if t.XMLName.Space == "" {
					name = t.Text
				}
			}
			if err := add(name, it.Link, it.Date); err != nil {
				return nil, err
			}
		}
		for _, e := range f.Entries {
			href := ""
			for _, l := range e.Links {
				if l.Rel == "" || l.Rel == "alternate" {
					href = l.Href
					break
				}
			}
			if err := add(e.Title, href, e.Updated); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(out, func(a, b item) int { return b.time.Compare(a.time) })
	return out, nil
}
