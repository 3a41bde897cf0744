package tool

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type sitemap struct {
	URLs []struct {
		Loc     string `xml:"loc"`
		LastMod string `xml:"lastmod"`
	} `xml:"url"`
	Maps []struct {
		Loc string `xml:"loc"`
	} `xml:"sitemap"`
}

func load(call *recurgent.Call, url string) (*sitemap, error) {
	resp, err := call.Fetch(url)
	if err != nil {
		return nil, err
	}
	if resp.Status == 404 {
		return nil, recurgent.Fail("not_found", "there is no sitemap at "+url)
	}
	if resp.Status >= 400 {
		return nil, recurgent.Fail("fetch_failed", url+" answered "+strconv.Itoa(resp.Status))
	}
	data := resp.Bytes()
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, recurgent.Fail("parse_failed", url+": "+err.Error())
		}
		if data, err = io.ReadAll(z); err != nil {
			return nil, recurgent.Fail("parse_failed", url+": "+err.Error())
		}
	}
	var m sitemap
	if err := xml.Unmarshal(data, &m); err != nil {
		return nil, recurgent.Fail("parse_failed", url+" is no sitemap: "+err.Error())
	}
	return &m, nil
}

func Run(call *recurgent.Call) (any, error) {
	url, ok := call.Arg(0, "url").(string)
	if !ok || url == "" {
		return nil, recurgent.Fail("invalid_input", "url must be a string")
	}
	since, ok := call.Arg(1, "since").(string)
	if _, err := time.Parse("2006-01-02", since); !ok || err != nil {
		return nil, recurgent.Fail("invalid_input", "since must be a day, YYYY-MM-DD")
	}
	out := []string{}
	seen := map[string]bool{}
	queue := []string{url}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		m, err := load(call, next)
		if err != nil {
			return nil, err
		}
		for _, u := range m.URLs {
			mod := strings.TrimSpace(u.LastMod)
			if len(mod) >= 10 && mod[:10] >= since {
				out = append(out, strings.TrimSpace(u.Loc))
			}
		}
		for _, s := range m.Maps {
			queue = append(queue, strings.TrimSpace(s.Loc))
		}
	}
	return out, nil
}
