package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

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

// AsWritten returns keyword arguments under the names that a program's text has for them: a name that the text has in Unicode's normal form D alone is given in that form, as the program
// would not find it in the form in which names are kept.
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

func keywordError(key, detail string) *InputError {
	return &InputError{Code: "invalid_name", Pointer: "/kwargs/" + strings.NewReplacer("~", "~0", "/",
		"~1").Replace(key), Detail: detail}
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
