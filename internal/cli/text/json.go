package text

import "github.com/recurgentd/recurgentd/internal/agent/rawjson"

// JSON returns a JSON document, or text that quotes JSON, for people: see rawjson.WithoutHTML.
func JSON[T ~string | ~[]byte](document T) string {
	return string(rawjson.WithoutHTML([]byte(document)))
}
