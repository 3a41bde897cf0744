package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"add", "value=", "responds?", "movie finder", "ö<t>h\"er", "名前", "имя", "نام", "😀",
		"a\u0301", "x\u00a0y", strings.Repeat("ö", MaxName)} {
		if err := CheckName("method", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for what, name := range map[string]string{
		"empty": "", "blank": " \t", "too long": strings.Repeat("x", MaxName+1), "a slash": "a/b", "a backslash": `a\b`,
		"dots": "..", "not UTF-8": "a\xff",
		"a control character": "a\x00", "a C1 control": "a\u0085", "delete": "a\x7f",
	} {
		for _, check := range []func(string, string) error{CheckName, CheckStoredName} {
			var refused *NameError
			if err := check("role", name); !errors.As(err, &refused) || refused.Field != "role" ||
				refused.Reason == "" {
				t.Errorf("%s %q: got %v", what, name, err)
			}
		}
	}
}

// Names that look alike are refused. Those stored earlier can be read.
func TestCheckNameRefusesTheInvisible(t *testing.T) {
	t.Parallel()
	for what, r := range map[string]rune{
		"right-to-left override": 0x202e, "left-to-right embedding": 0x202a, "isolate": 0x2066,
		"right-to-left mark": 0x200f, "arabic letter mark": 0x061c,
		"Braille blank": 0x2800, "zero-width space": 0x200b, "zero-width joiner": 0x200d,
		"zero-width non-joiner": 0x200c, "word joiner": 0x2060, "byte order mark": 0xfeff, "soft hyphen": 0x00ad,
		"line separator": 0x2028, "paragraph separator": 0x2029, "grapheme joiner": 0x034f,
		"variation selector": 0xfe0f, "hangul filler": 0x3164, "tag": 0xe0061,
	} {
		name := "a" + string(r) + "dd"
		var refused *NameError
		if err := CheckName("method", name); !errors.As(err, &refused) {
			t.Errorf("%s: %q passes", what, name)
		}
		if err := CheckStoredName("method", name); err != nil {
			t.Errorf("%s: %q, stored before, cannot be looked at: %v", what, name, err)
		}
	}
}

// Names are stored in one normal form. Outer white space of any kind is refused, but stored names with it can be read.
func TestName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"add": "add", "cafe\u0301": "caf\u00e9", "caf\u00e9": "caf\u00e9",
		"\u212b": "\u00c5", "\u1112\u1161\u11ab": "\ud55c", "a  b": "a  b"} {
		if got, err := Name("role", given); err != nil || got != want {
			t.Errorf("%+q: got %+q, %v, want %+q", given, got, err, want)
		}
	}
	for _, name := range []string{" a", "a ", "a\u00a0", "\u3000a", "a\u2003"} {
		var refused *NameError
		if _, err := Name("role", name); !errors.As(err, &refused) || refused.Reason != outerSpace {
			t.Errorf("%+q: %v", name, err)
		}
		if err := CheckStoredName("role", name); err != nil {
			t.Errorf("%+q, stored before: %v", name, err)
		}
	}
	lines := OtherForms([]string{"add", "cafe\u0301", "caf\u00e9", "o\u0308l"})
	if len(lines) != 2 || !strings.Contains(lines[0], "stored beside it") ||
		!strings.Contains(lines[1], "nothing has that name") {
		t.Errorf("got %q", lines)
	}
}

// Keywords are brought into normal form, and keep their order and values. Two that become equal are refused.
func TestKeywordArguments(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "{}": "{}", `{"a": 1, "b c": "x "}`: `{"a": 1, "b c": "x "}`, `{"": 1}`: `{"": 1}`,
		`{"caf\u00e9": 12345678901234567890}`: `{"caf\u00e9": 12345678901234567890}`,
		"{\"cafe\u0301\": 1, \"a\":[1, 2]}":   "{\"caf\u00e9\":1,\"a\":[1, 2]}",
		`{"cafe\u0301": 2}`:                   "{\"caf\u00e9\":2}",
	} {
		if got, err := KeywordArguments(json.RawMessage(given)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", given, got, err, want)
		}
	}
	for _, given := range []string{`{" a": 1}`, `{"a ": 1}`, `{"a\u00a0": 1}`, `{"\ta": 1}`,
		`{"cafe\u0301": 1, "caf\u00e9": 1}`} {
		var refused *InputError
		if got, err := KeywordArguments(json.RawMessage(
			given)); !errors.As(err, &refused) || refused.Code != "invalid_name" {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
}
