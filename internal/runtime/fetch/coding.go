package fetch

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

// acceptEncoding names the content codings that decoded undoes.
const acceptEncoding = "gzip, br"

// maxCodings bounds how many codings lie over each other.
const maxCodings = 2

// registered are the other content codings that IANA lists.
var registered = []string{"aes128gcm", "compress", "dcb", "dcz", "deflate", "exi", "pack200-gzip", "x-compress", "zstd"}

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
			if !slices.Contains(registered, name) {
				name = "of an unknown name" // what a server put there may be a secret that it was sent
			}
			return nil, false, &Refusal{KindEncoding, "the answer has the content coding " + name +
				", which nobody asked for"}
		}
	}
	return plain, count > 0, nil
}
