package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// largeArgument returns a megabyte of JSON with blanks after commas and colons, as Python clients send it.
func largeArgument() string {
	var rows []string
	for i := range 14_000 {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "row number %d", "tags": ["a", "b"], "x": %.1f}`, i, i,
			1.5*float64(i)))
	}
	return "[" + strings.Join(rows, ", ") + "]"
}

// large compares calls that take a megabyte and return it with requests to a server that only decodes and encodes it.
func (b *bench) large() ([]string, error) {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		err := json.NewDecoder(r.Body).Decode(&v)
		text, _ := json.Marshal(v) // what was decoded can be encoded
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(text) // the client reports the error
	}))
	defer bare.Close()
	body := fmt.Appendf(nil, `{"method": "same", "args": [%s]}`, largeArgument())
	urls := []string{bare.URL}
	for _, binary := range []string{b.daemon, b.other} {
		if binary == "" {
			continue
		}
		d, err := b.start(binary, nil)
		if err != nil {
			return nil, err
		}
		defer d.stop()
		t, err := d.target("", "large", "same")
		if err != nil {
			return nil, err
		}
		urls = append(urls, d.url+t.path)
	}
	times := make([][]time.Duration, len(urls))
	for range 10 * b.rounds {
		for i, url := range urls {
			began := time.Now()
			if err := exchange(url, body); err != nil {
				return nil, err
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	line := fmt.Sprintf("| %.1f MB of argument and of value, 1 client, to a bare JSON round trip",
		float64(len(body))/1e6)
	for i := range urls[1:] {
		line += fmt.Sprintf(" | %s: %.2f", []string{"this", "the other"}[i],
			float64(median(times[i+1]))/float64(median(times[0])))
	}
	return []string{line + " | 1.3 |"}, nil
}

// exchange posts the body and reads the reply, which must have at least half its length.
func exchange(url string, body []byte) error {
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || n < int64(len(body))/2) {
		err = fmt.Errorf("POST %s: %s with %d bytes", url, resp.Status, n)
	}
	return err
}
