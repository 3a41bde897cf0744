package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// KeywordArguments returns keyword arguments, an object or nothing, with their names in the form in which names are kept (NormalForm). A name with white space at its
// ends, and two that are the same then, are refused with an *InputError.
func KeywordArguments(kwargs json.RawMessage) (json.RawMessage, error) {
	if plainKeywords(kwargs) {
		return kwargs, nil
	}
	var refused *InputError
	changed, seen := false, map[string]bool{}
	out := []byte{'{'}
	rawjson.Members(kwargs, func(key string, value []byte) {
		name := NormalForm(key)
		switch {
		case strings.TrimSpace(name) != name:
			refused = keywordError(key, "a keyword "+outerSpace)
		case seen[name]:
			refused = keywordError(key, "the keyword is there twice: Unicode has several forms of it")
		}
		seen[name] = true
		changed = changed || name != key
		if len(seen) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, Encoded(name)...), ':'), value...)
	})
	if refused != nil {
		return nil, refused
	}
	if !changed {
		return kwargs, nil
	}
	return append(out, '}'), nil
}

func keywordError(key, detail string) *InputError {
	return &InputError{Code: "invalid_name", Pointer: "/kwargs/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key), Detail: detail}
}

// plainKeywords reports that no keyword can be another in the form in which names are kept: all is ASCII, without escapes, and no quote is beside a blank.
func plainKeywords(kwargs []byte) bool {
	for _, c := range kwargs {
		if c >= utf8.RuneSelf || c == '\\' || c < ' ' {
			return false
		}
	}
	return !bytes.Contains(kwargs, []byte(`" `)) && !bytes.Contains(kwargs, []byte(` "`))
}
