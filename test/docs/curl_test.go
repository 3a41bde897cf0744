package docs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// actAsCurl stands in for curl where there is none or an old one, with the few flags that the documents use.
func actAsCurl(args []string) int {
	method, body, address, header := "", "", "", http.Header{}
	out, head := os.Stdout, false
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch args[i] {
		case "-s", "-N", "-sN", "-sS":
		case "-i", "-si":
			head = true
		case "-I", "-sI":
			method, head = http.MethodHead, true
		case "-o":
			f, err := os.Create(value())
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 23
			}
			defer f.Close()
			out = f
		case "-X":
			method = value()
		case "-H":
			name, text, _ := strings.Cut(value(), ":")
			header.Set(name, strings.TrimSpace(text))
		case "-d":
			body = value()
		case "--data-binary":
			text, err := os.ReadFile(strings.TrimPrefix(value(), "@"))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 26
			}
			body = string(text)
		case "--json":
			body = value()
			header.Set("Content-Type", "application/json")
			header.Set("Accept", "application/json")
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
	if head {
		fmt.Fprintf(out, "%s %s\r\n", resp.Proto, resp.Status)
		if err := resp.Header.Write(out); err != nil {
			return 23
		}
		fmt.Fprint(out, "\r\n")
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return 18
	}
	return 0
}
