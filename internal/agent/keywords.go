package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// KeywordArguments returns keyword arguments, an object or nothing, with their names in normal form (NormalForm). It
// returns an *InputError if a name begins or ends with white space, or if two names are equal in normal form.
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
			refused = keywordError(key, "the keyword appears twice: Unicode has several forms of it")
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

// AsWritten returns keyword arguments under the names used in a program's source. A name that the source contains only
// in Unicode's normal form D is given in that form, because the program would not find it in form C.
func AsWritten(code string, kwargs json.RawMessage) json.RawMessage {
	if plainKeywords(kwargs) {
		return kwargs
	}
	changed := map[string]json.RawMessage{}
	rawjson.Members(kwargs, func(key string, value []byte) {
		if apart := norm.NFD.String(key); apart != key && !strings.Contains(code, key) &&
			strings.Contains(code, apart) {
			changed[key] = value
		}
	})
	if len(changed) == 0 {
		return kwargs
	}
	named := keywords(kwargs)
	for key, value := range changed {
		delete(named, key)
		named[norm.NFD.String(key)] = value
	}
	return Encoded(named)
}

// keywordError returns an error whose pointer names the keyword, escaped as in RFC 6901.
func keywordError(key, detail string) *InputError {
	return &InputError{Code: "invalid_name", Pointer: "/kwargs/" + strings.NewReplacer("~", "~0", "/",
		"~1").Replace(key), Detail: detail}
}

// plainKeywords reports whether all names are certainly in normal form and free of outer white space: the object is
// ASCII without escapes, and no quote is next to a space. False negatives only cost time.
func plainKeywords(kwargs []byte) bool {
	for _, c := range kwargs {
		if c >= utf8.RuneSelf || c == '\\' || c < ' ' {
			return false
		}
	}
	return !bytes.Contains(kwargs, []byte(`" `)) && !bytes.Contains(kwargs, []byte(` "`))
}
