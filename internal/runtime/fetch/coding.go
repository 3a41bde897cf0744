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

// acceptEncoding lists the content codings that decoded undoes.
const acceptEncoding = "gzip, br"

// maxCodings bounds the number of content codings applied to one body.
const maxCodings = 2

// registered are the other content codings in IANA's registry.
var registered = []string{"aes128gcm", "compress", "dcb", "dcz", "deflate", "exi", "pack200-gzip", "x-compress", "zstd"}

// decoded undoes the content codings in the header fields, the last one first, and reports whether there were any. An
// empty body needs no decoding.
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
				name = "of an unknown name" // the header may echo a secret that the server received
			}
			return nil, false, &Refusal{KindEncoding, "the answer has the content coding " + name +
				", which the request did not accept"}
		}
	}
	return plain, count > 0, nil
}
