package tool

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"recurgent"
)

var (
	line = regexp.MustCompile(`^\S+ \S+ \S+ \[[^\]]*\] "((?:[^"\\]|\\.)*)" (\d{3}) \S+(?: "(?:[^"\\]|\\.)*" "((?:[^"\\]|\\.)*)")?`)
	bot  = regexp.MustCompile(`(?i)bot|crawler|spider|slurp`)
)

func Run(call *recurgent.Call) (any, error) {
	raw, err := call.Open(call.Arg(0, "log"))
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(raw)
	var in io.Reader = buffered
	if head, _ := buffered.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "log: "+err.Error())
		}
		in = z
	} else if head, _ := buffered.Peek(512); bytes.IndexByte(head, 0) >= 0 {
		return nil, recurgent.Fail("invalid_input", "log is neither text nor gzip")
	}
	counts := map[string]int{}
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 64<<10), 1<<20)
	for sc.Scan() {
		m := line.FindStringSubmatch(sc.Text())
		if m == nil || m[2] != "404" || bot.MatchString(m[3]) {
			continue
		}
		parts := strings.Fields(m[1])
		if len(parts) < 2 {
			continue
		}
		path, _, _ := strings.Cut(parts[1], "?")
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
		counts[path]++
	}
	if err := sc.Err(); err != nil {
		return nil, recurgent.Fail("invalid_input", "log: "+err.Error())
	}
	type page struct {
		Path  string `json:"path"`
		Count int    `json:"count"`
	}
	out := []page{}
	for p, n := range counts {
		out = append(out, page{p, n})
	}
	slices.SortFunc(out, func(a, b page) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out, nil
}
