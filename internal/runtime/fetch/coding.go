package fetch

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// acceptEncoding names the content codings that decoded undoes.
const acceptEncoding = "gzip, br"

// maxCodings bounds how many codings lie over each other.
const maxCodings = 2

// decoded undoes the content codings that the header fields name, the last one first, and reports whether there were any. A body of no bytes has none.
func decoded(body io.Reader, fields []string) (plain io.Reader, coded bool, err error) {
	buffered := bufio.NewReader(body)
	if _, err := buffered.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return buffered, len(fields) > 0, err
	}
	plain = buffered
	names := strings.Split(strings.ToLower(strings.Join(fields, ",")), ",")
	count := 0
	for i := len(names) - 1; i >= 0; i-- {
		name := strings.TrimSpace(names[i])
		if name == "" || name == "identity" {
			continue
		}
		if count++; count > maxCodings {
			return nil, false, &Refusal{KindEncoding, "the answer has too many content codings"}
		}
		switch name {
		case "gzip", "x-gzip":
			if plain, err = gzip.NewReader(plain); err != nil {
				return nil, false, err
			}
		case "br":
			plain = brotli.NewReader(plain)
		default:
			return nil, false, &Refusal{KindEncoding, "the answer has the content coding " + wire.BoundText([]byte(name), 40) + ", which nobody asked for"}
		}
	}
	return plain, count > 0, nil
}
