package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// actAsCurl stands in for curl where there is none, with the few flags that the documents use: -s, -X, -H, -d.
func actAsCurl(args []string) int {
	method, body, address, header := "", "", "", http.Header{}
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch args[i] {
		case "-s":
		case "-X":
			method = value()
		case "-H":
			name, text, _ := strings.Cut(value(), ":")
			header.Set(name, strings.TrimSpace(text))
		case "-d":
			body = value()
		default:
			address = args[i]
		}
	}
	if method == "" {
		if method = http.MethodGet; body != "" {
			method = http.MethodPost
		}
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	r.Header = header
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 7
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return 18
	}
	return 0
}
