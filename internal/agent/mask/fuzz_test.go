package mask_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Masked JSON has the same structure, and masking it again changes nothing.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"password":"x","a":[1,{"token":5}],"key":"9fQ2xLm4Zt7Rb1Kc"}`,
		`["https://u:p@h.example/?api_key=k&b=c#token=x"]`, `{"a\u0062":"x\npwd=y","b":"{\"secret\":{\"a\":1}}"}`,
		`["Authorization: Bearer abc; Cookie: a=b; c"]`, `["password = \"a\\\"b\" x"]`, string(quoted(pem)),
		`["token='a", "b\\"]`, `["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x"]`, `["\\\"token\\\":[1,2"]`,
		`["token=[masked]x"]`} {
		f.Add([]byte(s))
	}
	r := rules()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			_, _ = r.JSON(raw) // does not panic
			return
		}
		got, changed := r.JSON(raw)
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is no JSON", raw, got)
		}
		if !changed && string(got) != string(raw) {
			t.Fatalf("%q became %q and was not changed", raw, got)
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(got, &after) != nil {
			return // a number that is too large
		}
		if !sameStructure(before, after) {
			t.Fatalf("%q became %q, which has another structure", raw, got)
		}
		if again, changed := r.JSON(got); changed {
			t.Fatalf("%q became %q, then %q", raw, got, again)
		}
	})
}

// sameStructure compares kinds and sizes. A masked value may have had any kind.
func sameStructure(a, b any) bool {
	if b == mask.Masked {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && len(b) <= len(a) // names that contain secrets may become equal
	case []any:
		b, ok := b.([]any)
		for i := range a {
			if !ok || len(a) != len(b) || !sameStructure(a[i], b[i]) {
				return false
			}
		}
		return ok
	case string:
		_, ok := b.(string)
		return ok
	}
	return a == b
}

// Masking text twice is the same as masking it once, and JSON stays JSON.
func FuzzText(f *testing.F) {
	for _, s := range []string{"password=x y", `{"token":{"a":[1]},"b":2}`, `{"token": 12 , "x":"secret: a"}`,
		"Authorization: Digest a=\"b\", c", "https://a:b@c/?d=token%3De&f", pem + pem, `{\"pwd\":\"a\\\"b\"}`,
		"token = 'it\\'s'"} {
		f.Add(s)
	}
	r := rules()
	f.Fuzz(func(t *testing.T, text string) {
		got := r.Text(text)
		if again := r.Text(got); again != got {
			t.Fatalf("%q became %q, then %q", text, got, again)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) && !strings.Contains(text, "PRIVATE KEY") {
			t.Fatalf("%q became %q, which is no JSON", text, got)
		}
	})
}

// A secret in a known place leaves no trace.
func FuzzCanary(f *testing.F) {
	f.Add("tr0ub4dor&3", "x")
	f.Add("a\"b\\c\nd e", `{"`)
	r := rules()
	f.Fuzz(func(t *testing.T, secret, other string) {
		if len(secret) < 8 || strings.Contains(other, secret) || strings.Contains(mask.Masked, secret) ||
			secret == mask.Masked {
			return
		}
		raw, _ := json.Marshal(map[string]any{"password": secret,
			"o" + other: []any{other, map[string]any{"api_key": []string{secret}}}})
		c := r.Call([]json.RawMessage{quoted(secret)}, raw, []string{"token"}, nil)
		bare := string(quoted(secret)[1 : len(quoted(secret))-1])
		if s := string(c.Args[0]) + string(c.Kwargs); len(bare) >= 8 && strings.Contains(s, bare) &&
			!strings.Contains(string(quoted(other)), bare) {
			t.Fatalf("%q is in %s", bare, s)
		}
	})
}

// The beginning and the end of a file, whatever they hold, are masked without a panic, and stay valid text.
func FuzzDocument(f *testing.F) {
	f.Add("user;password\nann;\"ge\nheim\"\n", "ann;x\n")
	f.Add("<a><password x='y'>z</password><key>token</key><b>c", "d</b></credentials>")
	f.Fuzz(func(t *testing.T, first, last string) {
		a, b := document(first, last)
		if utf8.ValidString(first) && utf8.ValidString(last) && !utf8.ValidString(a+b) {
			t.Fatalf("%q and %q became %q and %q", first, last, a, b)
		}
	})
}
