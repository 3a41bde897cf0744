package agent

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"add", "value=", "responds?", "movie finder", "ö<t>h\"er", "名前", "имя", "نام", "😀", "a\u0301", "x\u00a0y", strings.Repeat("ö", MaxName)} {
		if err := CheckName("method", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for what, name := range map[string]string{
		"empty": "", "blank": " \t", "too long": strings.Repeat("x", MaxName+1), "a slash": "a/b", "a backslash": `a\b`, "dots": "..", "not UTF-8": "a\xff",
		"a control character": "a\x00", "a C1 control": "a\u0085", "delete": "a\x7f",
	} {
		for _, check := range []func(string, string) error{CheckName, CheckStoredName} {
			var refused *NameError
			if err := check("role", name); !errors.As(err, &refused) || refused.Field != "role" || refused.Reason == "" {
				t.Errorf("%s %q: got %v", what, name, err)
			}
		}
	}
}

// Names that look the same are refused; those stored earlier can be read.
func TestCheckNameRefusesTheInvisible(t *testing.T) {
	t.Parallel()
	for what, r := range map[string]rune{
		"right-to-left override": 0x202e, "left-to-right embedding": 0x202a, "isolate": 0x2066, "right-to-left mark": 0x200f, "arabic letter mark": 0x061c,
		"Braille blank": 0x2800, "zero-width space": 0x200b, "zero-width joiner": 0x200d, "zero-width non-joiner": 0x200c, "word joiner": 0x2060, "byte order mark": 0xfeff, "soft hyphen": 0x00ad,
		"line separator": 0x2028, "paragraph separator": 0x2029, "grapheme joiner": 0x034f, "variation selector": 0xfe0f, "hangul filler": 0x3164, "tag": 0xe0061,
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
