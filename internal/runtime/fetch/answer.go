package fetch

import (
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// readBody reads a body of bounded length; the transport has decompressed it.
func readBody(answer *http.Response) ([]byte, error) {
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxFetchBody+1))
	if len(body) > maxFetchBody {
		return nil, &Refusal{KindTooLarge, fmt.Sprintf("the answer has more than %d bytes", maxFetchBody)}
	}
	return body, err
}

func response(answer *http.Response, body []byte) *recurgent.Response {
	return &recurgent.Response{Status: answer.StatusCode, Header: boundHeader(answer.Header), Body: wire.ValidText(body)}
}

func boundHeader(h http.Header) map[string]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names) // what is cut off is the same at every call
	out := make(map[string]string, len(names))
	sum := 0
	for _, name := range names {
		value := wire.ValidText([]byte(strings.Join(h[name], ", ")))
		sum += len(name) + len(value)
		if len(out) == maxFetchHeaders || sum > maxFetchHeaderSum {
			break
		}
		out[wire.ValidText([]byte(name))] = value
	}
	return out
}
